/** The exchanges of a run, a step or an attempt as an HTTP Archive, merged from the pages of the server. */

import { api, body } from "../api/client.ts";

interface Archive {
  readonly log: {
    readonly pages?: readonly { readonly id: string }[];
    readonly entries: readonly { readonly startedDateTime: string }[];
    readonly _next_cursor?: string;
  };
}

const PAGE = 500;

export async function archiveOf(run: string, step: string | null, attempt: number | null): Promise<string> {
  const parts: Archive[] = [];
  let cursor: string | undefined;
  do {
    const query = {
      format: "har" as const,
      limit: PAGE,
      ...(step === null ? {} : { step }),
      ...(attempt === null ? {} : { attempt }),
      ...(cursor === undefined ? {} : { cursor }),
    };
    const part = (await body(
      api.GET("/api/v1/runs/{run}/wire", { params: { path: { run }, query } }),
    )) as unknown as Archive;
    parts.push(part);
    cursor = part.log._next_cursor;
  } while (cursor !== undefined);
  const { _next_cursor: _, ...first } = parts[0]!.log;
  const pages = new Map(parts.flatMap((part) => part.log.pages ?? []).map((page) => [page.id, page]));
  const entries = parts.flatMap((part) => part.log.entries);
  entries.sort((one, other) => one.startedDateTime.localeCompare(other.startedDateTime));
  return JSON.stringify({ log: { ...first, pages: [...pages.values()], entries } }, null, 2);
}
