/** The queries of the agent pages. */

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";

export type Agent = components["schemas"]["AgentMetadata"];
export type Activity = components["schemas"]["AgentActivity"];
export type AgentCall = components["schemas"]["AgentCall"];
export type Dialect = components["schemas"]["Dialect"];
export type CardView = components["schemas"]["AgentCardView"];
export type CheckReport = components["schemas"]["CheckReport"];
export type CheckSummary = components["schemas"]["CheckSummary"];
export type CheckFinding = components["schemas"]["CheckFinding"];
export type Health = components["schemas"]["AgentHealth"];
export type Trial = components["schemas"]["TestCallResult"];
export type Message = components["schemas"]["AgentMessage"];

export const HOUR = 60;
const A_PAGE = 1_000;
// Limits how many agents are loaded.
const MOST_PAGES = 5;
// Above this number of agents, the list is refreshed less often.
const MANY = 500;

/** All agents with their activity, a thousand per request. */
export const agentsQuery = queryOptions({
  queryKey: ["agents", "list"],
  queryFn: async ({ signal }) => {
    const agents: Agent[] = [];
    let cursor: string | null = null;
    for (let page = 0; page < MOST_PAGES; page++) {
      const query: { limit: number; activity: number; cursor?: string } = { limit: A_PAGE, activity: HOUR };
      if (cursor !== null) query.cursor = cursor;
      const found: components["schemas"]["AgentPage"] = await body(
        api.GET("/api/v1/agents", { params: { query }, signal }),
      );
      agents.push(...found.items);
      cursor = found.next_cursor;
      if (cursor === null) break;
    }
    return { agents, areAll: cursor === null };
  },
  refetchInterval: ({ state }) => ((state.data?.agents.length ?? 0) > MANY ? 30_000 : 5_000),
});

export const agentQuery = (agent: string) =>
  queryOptions({
    queryKey: ["agents", "one", agent],
    queryFn: ({ signal }) => body(api.GET("/api/v1/agents/{agent}", { params: { path: { agent } }, signal })),
    refetchInterval: 5_000,
  });

export const activityQuery = (agent: string, minutes: number) =>
  queryOptions({
    queryKey: ["agents", "activity", agent, minutes],
    queryFn: ({ signal }) =>
      body(api.GET("/api/v1/agents/{agent}/activity", { params: { path: { agent }, query: { minutes } }, signal })),
    refetchInterval: 5_000,
  });

export const callsQuery = (agent: string) =>
  infiniteQueryOptions({
    queryKey: ["agents", "calls", agent],
    queryFn: ({ pageParam, signal }) =>
      body(
        api.GET("/api/v1/agents/{agent}/calls", {
          params: { path: { agent }, query: { limit: 50, ...(pageParam === null ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : 5_000),
  });

/** Sends a request to the agent itself, so it is not refreshed in the background. */
export const cardQuery = (agent: string) =>
  queryOptions({
    queryKey: ["agents", "card", agent],
    queryFn: ({ signal }) => body(api.GET("/api/v1/agents/{agent}/card", { params: { path: { agent } }, signal })),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });

export const checksQuery = (agent: string) =>
  queryOptions({
    queryKey: ["agents", "checks", agent],
    queryFn: ({ signal }) =>
      body(api.GET("/api/v1/agents/{agent}/checks", { params: { path: { agent }, query: { limit: 20 } }, signal })),
    refetchInterval: 30_000,
  });

/** A report is immutable. */
export const checkQuery = (agent: string, check: string) =>
  queryOptions({
    queryKey: ["agents", "check", agent, check],
    queryFn: ({ signal }) =>
      body(api.GET("/api/v1/agents/{agent}/checks/{check}", { params: { path: { agent, check } }, signal })),
    staleTime: Infinity,
  });
