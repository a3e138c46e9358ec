/** Validates the text on the server while the user types. */

import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { api, body } from "../../api/client.ts";
import { useConnection } from "../../api/connection.ts";
import type { Validation } from "../queries.ts";

// Long enough to type a word, short enough to feel immediate.
const TYPING_MS = 250;

export interface Checked {
  /** The latest result, also while the next is loading; null if there is none yet. */
  readonly validation: Validation | null;
  /** The text that was validated. */
  readonly text: string | null;
  /** Whether the result is for the current text; if not, whether another is loading. */
  readonly is: "current" | "asked" | "unanswered";
  readonly error: Error | null;
}

/** Each result keeps its text, so that a late result is not attributed to a newer text. */
export function useValidation(text: string): Checked {
  const [settled] = useDebouncedValue(text, TYPING_MS);
  const query = useQuery({
    queryKey: ["workflow-validation", settled],
    queryFn: async ({ signal }) => ({ text: settled, validation: await validate(settled, signal) }),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    gcTime: 60_000,
  });
  const { answers } = useConnection();
  const is = query.data?.text === text ? "current" : answers && query.error === null ? "asked" : "unanswered";
  return { validation: query.data?.validation ?? null, text: query.data?.text ?? null, is, error: query.error };
}

export function validate(text: string, signal: AbortSignal | null = null): Promise<Validation> {
  return body(api.POST("/api/v1/workflow-validation", { ...asText(text), signal }));
}

/** The definition is sent verbatim. */
export function asText(text: string) {
  return {
    body: text as never,
    bodySerializer: (written: unknown) => written as string,
    headers: { "Content-Type": "application/yaml" },
  };
}
