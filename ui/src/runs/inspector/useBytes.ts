/** The bytes of a file that an agent has answered with: out of the output, or from where they are kept beside it. */

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { key } from "../../api/key.ts";
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
      throw new Error("Bytes behind an agent's link are never fetched.");
  }
}

function unreadable(): Problem {
  return new Problem({
    title: "This file cannot be read",
    status: 0,
    detail: "What the agent has sent in the place of the file's bytes is not base64.",
    fix: "See what it is in the JSON of the output, then correct the agent.",
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
  /** Null: it would come to the same. */
  readonly again: (() => void) | null;
}

export function useBytes({ content }: FoundFile, wanted: boolean): Bytes {
  // What is in the output needs no keeping under a name, which another file might have, too.
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
