/** The queries of the workflow pages. */

import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";

export type Workflow = components["schemas"]["Workflow"];
export type WorkflowItem = components["schemas"]["WorkflowItem"];
export type Graph = components["schemas"]["Graph"];
export type Validation = components["schemas"]["WorkflowValidation"];
export type Finding = components["schemas"]["Finding"];

const LAST_RUNS = 8;
const MOST_NAMES = 1_000;

export const workflowsQuery = (q: string | undefined) =>
  infiniteQueryOptions({
    queryKey: ["workflows", "list", q ?? ""],
    queryFn: ({ pageParam, signal }) =>
      body(
        api.GET("/api/v1/workflows", {
          params: {
            query: {
              limit: 50,
              last_runs: LAST_RUNS,
              ...(q === undefined ? {} : { q }),
              ...(pageParam === null ? {} : { cursor: pageParam }),
            },
          },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: 5_000,
    placeholderData: keepPreviousData,
  });

/** The latest version, which others may change at any time. */
export const workflowQuery = (workflow: string) =>
  queryOptions({
    queryKey: ["workflows", "one", workflow],
    queryFn: ({ signal }) => body(api.GET("/api/v1/workflows/{workflow}", { params: { path: { workflow } }, signal })),
    refetchInterval: 10_000,
  });

/** A version is immutable. */
export const versionQuery = (workflow: string, version: number) =>
  queryOptions({
    queryKey: ["workflows", "version", workflow, version],
    queryFn: ({ signal }) =>
      body(
        api.GET("/api/v1/workflows/{workflow}/versions/{version}", { params: { path: { workflow, version } }, signal }),
      ),
    staleTime: Infinity,
  });

export const graphQuery = (workflow: string, version: number) =>
  queryOptions({
    queryKey: ["workflows", "graph", workflow, version],
    queryFn: ({ signal }) =>
      body(
        api.GET("/api/v1/workflows/{workflow}/graph", {
          params: { path: { workflow }, query: { version } },
          signal,
        }),
      ),
    staleTime: Infinity,
  });

export const versionsQuery = (workflow: string) =>
  infiniteQueryOptions({
    queryKey: ["workflows", "versions", workflow],
    queryFn: ({ pageParam, signal }) =>
      body(
        api.GET("/api/v1/workflows/{workflow}/versions", {
          params: { path: { workflow }, query: { limit: 50, ...(pageParam === null ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: 10_000,
  });

export const lastRunsQuery = (workflow: string) =>
  queryOptions({
    queryKey: ["runs", "of-workflow", workflow],
    queryFn: ({ signal }) =>
      body(api.GET("/api/v1/runs", { params: { query: { workflow, limit: LAST_RUNS } }, signal })),
    refetchInterval: 3_000,
  });

// The sources of completion in the editor.

export const schemaQuery = queryOptions({
  queryKey: ["workflows", "schema"],
  queryFn: ({ signal }) => body(api.GET("/api/v1/workflow-schema", { signal })),
  staleTime: Infinity,
});

export const agentNamesQuery = queryOptions({
  queryKey: ["agents", "names"],
  queryFn: async ({ signal }) => {
    const page = await body(api.GET("/api/v1/agents", { params: { query: { limit: MOST_NAMES } }, signal }));
    return page.items.map((agent) => agent.name);
  },
  staleTime: 30_000,
});

export const workflowNamesQuery = queryOptions({
  queryKey: ["workflows", "names"],
  queryFn: async ({ signal }) => {
    const page = await body(api.GET("/api/v1/workflows", { params: { query: { limit: MOST_NAMES } }, signal }));
    return page.items.map((workflow) => workflow.name);
  },
  staleTime: 30_000,
});
