/** The bytes of a file that an agent has answered with: out of the output, or from where they are kept beside it. */

import { useQuery } from "@tanstack/react-query";

import { key } from "../../api/key.ts";
import { Problem, problemOf } from "../../api/problem.ts";
import { decoded, type FoundFile } from "./files.ts";

export async function bytesIn(content: FoundFile["content"], signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  switch (content.of) {
    case "inline": {
      const bytes = decoded(content.base64);
      if (bytes !== null) return bytes;
      throw new Problem({
        title: "This file cannot be read",
        status: 0,
        detail: "What the agent has sent in the place of the file's bytes is not base64.",
        fix: "See what it is in the JSON of the output, then correct the agent.",
      });
    }
    case "blob":
      return await fetched(`/api/v1/runs/${encodeURIComponent(content.run)}/blobs/${encodeURIComponent(content.id)}`, signal);
    case "link":
      throw new Error("Bytes behind an agent's link are never fetched.");
  }
}

async function fetched(address: string, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const present = key.read();
  const headers: Record<string, string> = present === null ? {} : { Authorization: `Bearer ${present}` };
  const response = await fetch(address, { headers, ...(signal === undefined ? {} : { signal }) });
  if (!response.ok) throw await problemOf(response);
  return new Uint8Array(await response.arrayBuffer());
}

export function useBytes(file: FoundFile, wanted: boolean) {
  const { content } = file;
  const name = content.of === "blob" ? content.id : content.of === "inline" ? content.base64.slice(0, 64) + content.base64.length : "";
  return useQuery({
    queryKey: ["file", content.of, name],
    queryFn: ({ signal }) => bytesIn(content, signal),
    enabled: wanted && content.of !== "link",
    staleTime: Infinity,
    gcTime: 30_000,
  });
}
