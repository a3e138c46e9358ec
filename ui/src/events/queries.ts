/** The queries and mutations of received events. */

import { infiniteQueryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import type { Json } from "../forms/schema.ts";

export type ReceivedEvent = components["schemas"]["ReceivedEvent"];

const REFRESH_MS = 5_000;
const A_PAGE = 50;

export interface EventFilter {
  readonly type?: string;
  readonly key?: string;
}

export const eventsQuery = (filter: EventFilter) =>
  infiniteQueryOptions({
    queryKey: ["events", "list", filter],
    queryFn: ({ pageParam, signal }) =>
      body(
        api.GET("/api/v1/events", {
          params: { query: { limit: A_PAGE, ...filter, ...(pageParam === null ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : REFRESH_MS),
  });

export interface NewEvent {
  readonly type: string;
  readonly key?: string;
  readonly data: Json;
}

export function useSend() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (event: NewEvent) => body(api.POST("/api/v1/events", { body: event as never })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["events"] }),
  });
}
