/** The permissions of the API key in use. The server enforces them; this only disables what it would reject. */

import { type QueryClient, queryOptions, useQuery } from "@tanstack/react-query";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";

export type Caller = components["schemas"]["Caller"];
export type Role = Caller["role"];

export type Permission = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

const RANKS: Readonly<Record<Role, number>> = { caller: 0, viewer: 1, operator: 2, admin: 3 };
const ALLOWED: Permission = { allowed: true };
// A revoked key or a changed role is noticed earlier, with the first rejected request.
const FRESH_MS = 60_000;

/** The owner and role of the key. Without keys, everything is allowed. */
export const callerQuery = queryOptions({
  queryKey: ["me"],
  queryFn: () => body(api.GET("/api/v1/me")),
  staleTime: FRESH_MS,
});

/** Clears all cached data when the key changes, so that a user never sees another user's data. */
export async function clearCachedData(queries: QueryClient): Promise<void> {
  await queries.resetQueries({ queryKey: callerQuery.queryKey });
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== callerQuery.queryKey[0] });
}

export function usePermission(role: Role): Permission {
  const { data: caller } = useQuery(callerQuery);
  if (caller === undefined || RANKS[caller.role] >= RANKS[role]) return ALLOWED;
  return {
    allowed: false,
    reason: `Requires the role ${role}. The API key ${caller.name ?? ""} has the role ${caller.role}.`,
  };
}
