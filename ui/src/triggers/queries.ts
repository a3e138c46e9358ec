/** The queries and mutations of triggers. */

import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import { asText } from "../workflows/editor/validation.ts";

export type Trigger = components["schemas"]["Trigger"];
export type ListedTrigger = components["schemas"]["ListedTrigger"];
export type Firing = components["schemas"]["Firing"];
export type UpcomingTrigger = components["schemas"]["UpcomingTrigger"];

const REFRESH_MS = 5_000;
const A_PAGE = 50;

export const triggersQuery = infiniteQueryOptions({
  queryKey: ["triggers", "list"],
  queryFn: ({ pageParam, signal }) =>
    body(api.GET("/api/v1/triggers", { params: { query: { limit: A_PAGE, ...at(pageParam) } }, signal })),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next_cursor,
  // Only the first page is refreshed automatically.
  refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : REFRESH_MS),
});

export const upcomingQuery = queryOptions({
  queryKey: ["triggers", "upcoming"],
  queryFn: ({ signal }) => body(api.GET("/api/v1/upcoming-firings", { params: { query: { hours: 24 } }, signal })),
  refetchInterval: 30_000,
});

export const triggerQuery = (trigger: string) =>
  queryOptions({
    queryKey: ["triggers", "one", trigger],
    queryFn: ({ signal }) => body(api.GET("/api/v1/triggers/{trigger}", { params: { path: { trigger } }, signal })),
    refetchInterval: REFRESH_MS,
  });

export const firingsQuery = (trigger: string) =>
  infiniteQueryOptions({
    queryKey: ["triggers", "firings", trigger],
    queryFn: ({ pageParam, signal }) =>
      body(
        api.GET("/api/v1/triggers/{trigger}/firings", {
          params: { path: { trigger }, query: { limit: A_PAGE, ...at(pageParam) } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : REFRESH_MS),
  });

/** Validates the text on the server without saving it. */
export const previewQuery = (text: string) =>
  queryOptions({
    queryKey: ["trigger-validation", text],
    queryFn: ({ signal }) => body(api.POST("/api/v1/trigger-validation", { ...asText(text), signal })),
    retry: false,
    staleTime: 30_000,
    gcTime: 60_000,
  });

function useForgetting() {
  const queries = useQueryClient();
  return () => void queries.invalidateQueries({ queryKey: ["triggers"] });
}

export function useSwitch(trigger: string) {
  return useMutation({
    mutationFn: (action: "pause" | "resume") =>
      body(api.POST(`/api/v1/triggers/{trigger}/${action}`, { params: { path: { trigger } } })),
    onSettled: useForgetting(),
  });
}

export function useFire(trigger: string) {
  return useMutation({
    mutationFn: () => body(api.POST("/api/v1/triggers/{trigger}/fire", { params: { path: { trigger } } })),
    onSettled: useForgetting(),
  });
}

export function useDelete(trigger: string) {
  return useMutation({
    mutationFn: () => api.DELETE("/api/v1/triggers/{trigger}", { params: { path: { trigger } } }),
    onSettled: useForgetting(),
  });
}

/** `trigger`: the one that is replaced; null: it is new. */
export function useSave(trigger: string | null) {
  return useMutation({
    mutationFn: (text: string) =>
      trigger === null
        ? body(api.POST("/api/v1/triggers", asText(text)))
        : body(api.PUT("/api/v1/triggers/{trigger}", { params: { path: { trigger } }, ...asText(text) })),
    onSettled: useForgetting(),
  });
}

function at(cursor: string | null): { cursor?: string } {
  return cursor === null ? {} : { cursor };
}
