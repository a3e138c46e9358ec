/** The server's opinion of a text as it is written. */

import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { api, body } from "../../api/client.ts";
import { useConnection } from "../../api/connection.ts";
import type { Validation } from "../queries.ts";

// Long enough for a word, short enough to follow the writer.
const TYPING_MS = 250;

export interface Checked {
  /** Null: none yet. The last answer there is, also while the next is on its way. */
  readonly validation: Validation | null;
  /** The text that it is about. */
  readonly text: string | null;
  /** Whether it is about the text as it stands; if not, whether another is on its way. */
  readonly is: "current" | "asked" | "unanswered";
  readonly error: Error | null;
}

/** An answer about a text that has changed since is not shown as one about the new text: it is known by its text. */
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

/** A definition goes as it was written. */
export function asText(text: string) {
  return {
    body: text as never,
    bodySerializer: (written: unknown) => written as string,
    headers: { "Content-Type": "application/yaml" },
  };
}
