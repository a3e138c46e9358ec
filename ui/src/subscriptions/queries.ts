/** The queries and mutations of subscriptions. */

import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";

export type Subscription = components["schemas"]["Subscription"];
export type SubscriptionRequest = components["schemas"]["SubscriptionRequest"];
export type Delivery = components["schemas"]["Delivery"];
export type ChangeType = Subscription["types"][number];

const REFRESH_MS = 5_000;
const A_PAGE = 50;

export const subscriptionsQuery = infiniteQueryOptions({
  queryKey: ["subscriptions", "list"],
  queryFn: ({ pageParam, signal }) =>
    body(api.GET("/api/v1/subscriptions", { params: { query: { limit: A_PAGE, ...at(pageParam) } }, signal })),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next_cursor,
  // Only the first page is refreshed automatically.
  refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : REFRESH_MS),
});

export const subscriptionQuery = (subscription: string) =>
  queryOptions({
    queryKey: ["subscriptions", "one", subscription],
    queryFn: ({ signal }) =>
      body(api.GET("/api/v1/subscriptions/{subscription}", { params: { path: { subscription } }, signal })),
    refetchInterval: REFRESH_MS,
  });

export const deliveriesQuery = (subscription: string) =>
  infiniteQueryOptions({
    queryKey: ["subscriptions", "deliveries", subscription],
    queryFn: ({ pageParam, signal }) =>
      body(
        api.GET("/api/v1/subscriptions/{subscription}/deliveries", {
          params: { path: { subscription }, query: { limit: A_PAGE, ...at(pageParam) } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : REFRESH_MS),
  });

function useForgetting() {
  const queries = useQueryClient();
  return () => void queries.invalidateQueries({ queryKey: ["subscriptions"] });
}

export function useSwitch(subscription: string) {
  return useMutation({
    mutationFn: (action: "pause" | "resume") =>
      body(api.POST(`/api/v1/subscriptions/{subscription}/${action}`, { params: { path: { subscription } } })),
    onSettled: useForgetting(),
  });
}

export function useTestDelivery(subscription: string) {
  return useMutation({
    mutationFn: () =>
      body(api.POST("/api/v1/subscriptions/{subscription}/test", { params: { path: { subscription } } })),
    onSettled: useForgetting(),
  });
}

export function useRedeliver(subscription: string) {
  return useMutation({
    mutationFn: (delivery: string) =>
      body(
        api.POST("/api/v1/subscriptions/{subscription}/deliveries/{delivery}/redeliver", {
          params: { path: { subscription, delivery } },
        }),
      ),
    onSettled: useForgetting(),
  });
}

export function useDelete(subscription: string) {
  return useMutation({
    mutationFn: () => api.DELETE("/api/v1/subscriptions/{subscription}", { params: { path: { subscription } } }),
    onSettled: useForgetting(),
  });
}

/** `isNew`: an existing one with the same name is not replaced. */
export function useSave(isNew: boolean) {
  return useMutation({
    mutationFn: (request: SubscriptionRequest) =>
      isNew
        ? body(api.POST("/api/v1/subscriptions", { body: request }))
        : body(
            api.PUT("/api/v1/subscriptions/{subscription}", {
              params: { path: { subscription: request.name } },
              body: request,
            }),
          ),
    onSettled: useForgetting(),
  });
}

function at(cursor: string | null): { cursor?: string } {
  return cursor === null ? {} : { cursor };
}
