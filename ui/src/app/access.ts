/** What the key of this page may do. The server decides; this only spares people the refusal. */

import { type QueryClient, queryOptions, useQuery } from "@tanstack/react-query";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";

export type Caller = components["schemas"]["Caller"];
export type Role = Caller["role"];

export type May = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

const RANKS: Readonly<Record<Role, number>> = { viewer: 0, operator: 1, admin: 2 };
const ALLOWED: May = { allowed: true };
// A key that was revoked, or has another role by now, is noticed by what it is refused.
const FRESH_MS = 60_000;

/** Whose key this is; where the server wants none, everybody may do everything. */
export const callerQuery = queryOptions({
  queryKey: ["me"],
  queryFn: () => body(api.GET("/api/v1/me")),
  staleTime: FRESH_MS,
});

/** For another key, or none: nobody sees what the one before was told. */
export async function beginAnew(queries: QueryClient): Promise<void> {
  await queries.resetQueries({ queryKey: callerQuery.queryKey });
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== callerQuery.queryKey[0] });
}

export function useMay(role: Role): May {
  const { data: caller } = useQuery(callerQuery);
  if (caller === undefined || RANKS[caller.role] >= RANKS[role]) return ALLOWED;
  return { allowed: false, reason: `The key ${caller.name ?? ""} has the role ${caller.role}; this takes ${role}.` };
}
