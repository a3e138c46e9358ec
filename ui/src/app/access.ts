/** What the key of this page may do. The server decides; this only spares people the refusal. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { api, body } from "../api/client.ts";
import { key } from "../api/key.ts";
import type { components } from "../api/schema.d.ts";

export type Caller = components["schemas"]["Caller"];
export type Role = Caller["role"];

export type May = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

const RANKS: Readonly<Record<Role, number>> = { viewer: 0, operator: 1, admin: 2 };
const ALLOWED: May = { allowed: true };

/** Whose key this is; undefined: not known yet, or the server does not say. */
export function useCaller(): Caller | undefined {
  const queries = useQueryClient();
  useEffect(() => key.subscribe(() => void queries.invalidateQueries({ queryKey: ["me"] })), [queries]);
  return useQuery({ queryKey: ["me"], queryFn: () => body(api.GET("/api/v1/me")), staleTime: 60_000 }).data;
}

export function useMay(role: Role): May {
  const caller = useCaller();
  if (caller === undefined || RANKS[caller.role] >= RANKS[role]) return ALLOWED;
  return { allowed: false, reason: `The key ${caller.name ?? ""} has the role ${caller.role}; this takes ${role}.` };
}
