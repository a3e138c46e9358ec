/** The queries and mutations of the system page. */

import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, body } from "../api/client.ts";
import type { components, operations } from "../api/schema.d.ts";

export type System = components["schemas"]["SystemState"];
export type Process = components["schemas"]["Process"];
export type Count = components["schemas"]["Count"];
export type Consumers = components["schemas"]["Consumers"];
export type DeadLetter = components["schemas"]["DeadLetterSummary"];
export type AuditEntry = components["schemas"]["AuditEntry"];
export type ApiKey = components["schemas"]["ApiKey"];
export type NewApiKey = components["schemas"]["NewApiKey"];
export type AuditKind = AuditEntry["kind"];

const REFRESH_MS = 5_000;
const A_PAGE = 50;

export const systemQuery = queryOptions({
  queryKey: ["system", "state"],
  queryFn: ({ signal }) => body(api.GET("/api/v1/system", { signal })),
  refetchInterval: REFRESH_MS,
});

export const deadLettersQuery = infiniteQueryOptions({
  queryKey: ["system", "letters"],
  queryFn: ({ pageParam, signal }) =>
    body(api.GET("/api/v1/dead-letters", { params: { query: { limit: A_PAGE, ...at(pageParam) } }, signal })),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next_cursor,
  // Only the first page is refreshed automatically.
  refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : REFRESH_MS),
});

export const deadLetterQuery = (letter: string) =>
  queryOptions({
    queryKey: ["system", "letter", letter],
    queryFn: ({ signal }) => body(api.GET("/api/v1/dead-letters/{letter}", { params: { path: { letter } }, signal })),
    staleTime: Infinity,
  });

export interface AuditFilter {
  readonly who?: string;
  readonly kind?: AuditKind;
  readonly subject?: string;
}

type AuditParameters = NonNullable<operations["list_audit"]["parameters"]["query"]>;

export const auditQuery = (filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ["system", "audit", filter],
    queryFn: ({ pageParam, signal }) => {
      const query: AuditParameters = { limit: A_PAGE, ...filter, ...at(pageParam) };
      return body(api.GET("/api/v1/audit", { params: { query }, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : REFRESH_MS),
  });

export const keysQuery = infiniteQueryOptions({
  queryKey: ["system", "keys"],
  queryFn: ({ pageParam, signal }) =>
    body(api.GET("/api/v1/keys", { params: { query: { limit: A_PAGE, ...at(pageParam) } }, signal })),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next_cursor,
  refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : REFRESH_MS),
});

export function useCreateKey() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (wanted: NewApiKey) => body(api.POST("/api/v1/keys", { body: wanted })),
    onSettled: () => queries.invalidateQueries({ queryKey: keysQuery.queryKey }),
    // The key itself is in the answer, so it does not stay in memory.
    gcTime: 0,
  });
}

export function useRevokeKey() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (key: string) => api.DELETE("/api/v1/keys/{key}", { params: { path: { key } } }),
    onSettled: () => queries.invalidateQueries({ queryKey: keysQuery.queryKey }),
  });
}

export type Decision = "replay" | "delete";

export function useDecision(letter: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (decision: Decision) => {
      const params = { path: { letter } };
      if (decision === "replay") await api.POST("/api/v1/dead-letters/{letter}/replay", { params });
      else await api.DELETE("/api/v1/dead-letters/{letter}", { params });
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["system"] }),
  });
}

function at(cursor: string | null): { cursor?: string } {
  return cursor === null ? {} : { cursor };
}
