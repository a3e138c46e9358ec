/** The queries and mutations of the migration pages. */

import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";

export type Entry = components["schemas"]["MigrationEntry"];
export type Status = components["schemas"]["MigrationStatus"];
export type State = components["schemas"]["MigrationState"];
export type Stage = State["stage"];
export type Limits = components["schemas"]["MigrationLimits"];
export type Blocker = components["schemas"]["Blocker"];
export type Compared = components["schemas"]["Comparison"];
export type Verdict = Compared["verdict"];
export type AgentEvent = components["schemas"]["AgentEvent"];
export type Outcome = components["schemas"]["MigrationOutcome"];

const A_PAGE = 200;

/** Loads all agents, because a partial board would be misleading. */
export const planQuery = queryOptions({
  queryKey: ["migration", "plan"],
  queryFn: async ({ signal }) => {
    const entries: Entry[] = [];
    let cursor: string | null = null;
    do {
      const page: components["schemas"]["MigrationPage"] = await body(
        api.GET("/api/v1/migration", {
          params: { query: { limit: A_PAGE, ...(cursor === null ? {} : { cursor }) } },
          signal,
        }),
      );
      entries.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor !== null);
    return entries;
  },
  refetchInterval: ({ state }) => ((state.data?.length ?? 0) > A_PAGE ? 20_000 : 4_000),
});

export const statusQuery = (agent: string) =>
  queryOptions({
    queryKey: ["migration", "agent", agent],
    queryFn: ({ signal }) => body(api.GET("/api/v1/migration/agents/{agent}", { params: { path: { agent } }, signal })),
    refetchInterval: 3_000,
  });

export const comparisonsQuery = (agent: string, verdict: Verdict | undefined) =>
  infiniteQueryOptions({
    queryKey: ["migration", "comparisons", agent, verdict],
    queryFn: ({ pageParam, signal }) =>
      body(
        api.GET("/api/v1/migration/agents/{agent}/comparisons", {
          params: {
            path: { agent },
            query: {
              limit: 25,
              ...(verdict === undefined ? {} : { verdict }),
              ...(pageParam === null ? {} : { cursor: pageParam }),
            },
          },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : 3_000),
  });

export const eventsQuery = (agent: string) =>
  infiniteQueryOptions({
    queryKey: ["migration", "events", agent],
    queryFn: ({ pageParam, signal }) =>
      body(
        api.GET("/api/v1/migration/events", {
          params: { query: { agent, limit: 25, ...(pageParam === null ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : 5_000),
  });

/** The actions with their request bodies. */
export type ActionRequest =
  | { readonly action: "ready"; readonly body: components["schemas"]["ReadyRequest"] }
  | { readonly action: "shadow" | "canary"; readonly body: components["schemas"]["RolloutStageRequest"] }
  | { readonly action: "cutover"; readonly body: components["schemas"]["CutoverRequest"] }
  | { readonly action: "rollback"; readonly body: components["schemas"]["RollbackRequest"] }
  | { readonly action: "finish"; readonly body: components["schemas"]["MigrationRequest"] };

export type Action = ActionRequest["action"];

export function useMigrationAction(agent: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (wish: ActionRequest) => body(move(agent, wish)),
    onSettled: () => queries.invalidateQueries({ queryKey: ["migration"] }),
  });
}

function move(agent: string, wish: ActionRequest) {
  const params = { path: { agent } };
  switch (wish.action) {
    case "ready":
      return api.POST("/api/v1/migration/agents/{agent}/ready", { params, body: wish.body });
    case "shadow":
      return api.POST("/api/v1/migration/agents/{agent}/shadow", { params, body: wish.body });
    case "canary":
      return api.POST("/api/v1/migration/agents/{agent}/canary", { params, body: wish.body });
    case "cutover":
      return api.POST("/api/v1/migration/agents/{agent}/cutover", { params, body: wish.body });
    case "rollback":
      return api.POST("/api/v1/migration/agents/{agent}/rollback", { params, body: wish.body });
    case "finish":
      return api.POST("/api/v1/migration/agents/{agent}/finish", { params, body: wish.body });
  }
}

/** Checks the target without sending work to it. */
export function useCheck(agent: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => body(api.POST("/api/v1/migration/agents/{agent}/check", { params: { path: { agent } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["migration"] }),
  });
}

export type FleetAction = "cutover" | "rollback" | "finish";

export function useFleetAction() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({
      action,
      why,
      who,
      force,
    }: {
      action: FleetAction;
      why: string;
      who: string | null;
      force: boolean;
    }) => {
      switch (action) {
        case "cutover":
          return body(api.POST("/api/v1/migration/cutover", { body: { force, why, who } }));
        case "rollback":
          return body(api.POST("/api/v1/migration/rollback", { body: { force, why, who } }));
        case "finish":
          return body(api.POST("/api/v1/migration/finish", { body: { why, who } }));
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["migration"] }),
  });
}
