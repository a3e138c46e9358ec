/** What somebody has found on looking whether an agent is there: this tab remembers it, for it is newer than any call. */

import { queryOptions, type QueryClient, skipToken } from "@tanstack/react-query";

import { serverNow } from "../api/clock.ts";
import type { Health } from "./queries.ts";

export interface Look {
  readonly status: Health["status"];
  readonly detail: string;
  readonly at: string;
}

export const lookQuery = (agent: string) =>
  queryOptions<Look>({ queryKey: ["looks", agent], queryFn: skipToken, staleTime: Infinity, gcTime: Infinity });

export function rememberLook(queries: QueryClient, agent: string, { status, detail }: Health): void {
  const look: Look = { status, detail, at: new Date(serverNow()).toISOString() };
  queries.setQueryDefaults(["looks"], { gcTime: Infinity });
  queries.setQueryData(lookQuery(agent).queryKey, look);
}
