/** Reads the bytes of a file from the output of an agent, or from the blob store. */

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { key } from "../../api/apiKey.ts";
import { Problem, problemOf } from "../../api/problem.ts";
import { decoded, type FoundFile } from "./files.ts";

export async function bytesIn(content: FoundFile["content"], signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  switch (content.of) {
    case "inline": {
      const bytes = decoded(content.base64);
      if (bytes === null) throw unreadable();
      return bytes;
    }
    case "blob":
      return await fetched(
        `/api/v1/runs/${encodeURIComponent(content.run)}/blobs/${encodeURIComponent(content.id)}`,
        signal,
      );
    case "link":
      throw new Error("Links of agents are never fetched.");
  }
}

function unreadable(): Problem {
  return new Problem({
    title: "The file can't be read",
    status: 0,
    detail: "The agent sent file content that is not valid base64.",
    fix: "Inspect the JSON of the output, then fix the agent.",
  });
}

async function fetched(address: string, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const present = key.read();
  const headers: Record<string, string> = present === null ? {} : { Authorization: `Bearer ${present}` };
  const response = await fetch(address, { headers, ...(signal === undefined ? {} : { signal }) });
  if (!response.ok) throw await problemOf(response);
  return new Uint8Array(await response.arrayBuffer());
}

export interface Bytes {
  readonly data: Uint8Array<ArrayBuffer> | undefined;
  readonly error: Error | null;
  /** Null if a retry cannot succeed. */
  readonly again: (() => void) | null;
}

export function useFileBytes({ content }: FoundFile, wanted: boolean): Bytes {
  // Inline content is not cached by name, because names are not unique.
  const base64 = wanted && content.of === "inline" ? content.base64 : null;
  const inline = useMemo(() => (base64 === null ? null : decoded(base64)), [base64]);
  const kept = useQuery({
    queryKey: ["file", content.of === "blob" ? content.run : "", content.of === "blob" ? content.id : ""],
    queryFn: ({ signal }) => bytesIn(content, signal),
    enabled: wanted && content.of === "blob",
    staleTime: Infinity,
    gcTime: 30_000,
  });
  if (content.of === "blob") return { data: kept.data, error: kept.error, again: () => void kept.refetch() };
  return { data: inline ?? undefined, error: base64 !== null && inline === null ? unreadable() : null, again: null };
}
