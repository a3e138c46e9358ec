/** The runs that steps have begun and a reader has opened: their graphs, and how their steps stand. */

import { type QueryClient, queryOptions, useQueries, useQueryClient } from "@tanstack/react-query";
import { useMemo, useRef } from "react";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import { type Graph, parentOf } from "../graph/plan.ts";
import { failureOf, freshStep, isFinal, type ItemCounts, type RunModel, type StepModel } from "./model.ts";

type Run = components["schemas"]["Run"];
type Step = components["schemas"]["Step"];
type Items = components["schemas"]["Items"];

export interface ChildPicture {
  readonly run: string;
  readonly graph: Graph;
  readonly states: ReadonlyMap<string, StepModel>;
}

// A stream for each would use up the few connections that a browser has for one server.
const LOOK_AGAIN_MS = 1_000;
const FRESH_MS = 1_000;

/** By nodes of the graph; `open` has them, too. A child of a child is there as soon as the child is. */
export function useChildPictures(model: RunModel, open: ReadonlySet<string>): ReadonlyMap<string, ChildPicture> {
  const queries = useQueryClient();
  const wanted = [...open].flatMap((node) => {
    const run = isAllOpen(node, open) ? runBegunBy(node, model, queries) : null;
    return run === null ? [] : [{ node, run }];
  });
  const runs = useQueries({
    queries: wanted.map(({ run }) => ({
      ...runQuery(run),
      refetchInterval: (query: { state: { data?: Run | undefined } }) => (isOver(query.state.data) ? false : LOOK_AGAIN_MS),
    })),
  });
  const graphs = useQueries({
    queries: runs.map(({ data }) => ({
      queryKey: ["graph", data?.workflow.name, data?.workflow.version],
      queryFn: () => readGraph(data!.workflow.name, data!.workflow.version),
      enabled: data !== undefined,
      staleTime: Infinity,
    })),
  });
  const kept = useRef<ReadonlyMap<string, ChildPicture>>(new Map());
  const pieces = wanted.flatMap(({ node, run }, place) => [node, run, runs[place]?.data, graphs[place]?.data]);
  return useMemo(() => {
    const pictures = new Map<string, ChildPicture>();
    wanted.forEach(({ node, run }, place) => {
      const [shown, graph] = [runs[place]?.data, graphs[place]?.data];
      if (shown !== undefined && graph !== undefined) pictures.set(node, { run, graph, states: statesOf(shown.steps) });
    });
    if (pictures.size > 0 || kept.current.size > 0) kept.current = pictures;
    return kept.current;
    // As many pieces as there are open steps: compared one by one, as React does, under one key.
  }, [useStable(pieces)]);
}

/** What is inside of a step that is closed is not shown. */
function isAllOpen(node: string, open: ReadonlySet<string>): boolean {
  const { node: parent } = parentOf(node);
  return open.has(node) && (parent === null || isAllOpen(parent, open));
}

/** The run behind a node; null: none, or it is not known yet what is above it. */
function runBegunBy(id: string, model: RunModel, queries: QueryClient): string | null {
  const { node, name } = parentOf(id);
  if (node === null) {
    const state = model.steps.get(name);
    return state === undefined || state.items !== null ? null : (state.child?.run ?? null);
  }
  const above = runBegunBy(node, model, queries);
  const run = above === null ? undefined : queries.getQueryData<Run>(runQuery(above).queryKey);
  return run?.steps.find((step) => step.name === name)?.child?.run_id ?? null;
}

/** The same array as long as its parts are the same. */
function useStable(parts: readonly unknown[]): readonly unknown[] {
  const kept = useRef(parts);
  if (kept.current.length !== parts.length || kept.current.some((part, place) => part !== parts[place])) kept.current = parts;
  return kept.current;
}

/** The run without what its steps were given and gave; one that is over is read once. */
export function runQuery(run: string) {
  return queryOptions({
    queryKey: ["run", run],
    queryFn: ({ signal }): Promise<Run> =>
      body(api.GET("/api/v1/runs/{run}", { params: { path: { run }, query: { step_payloads: false } }, signal })),
    staleTime: ({ state }) => (isOver(state.data) ? Infinity : FRESH_MS),
  });
}

function isOver(run: Run | undefined): boolean {
  return run !== undefined && isFinal(run.status);
}

export function readGraph(workflow: string, version: number): Promise<Graph> {
  return body(
    api.GET("/api/v1/workflows/{workflow}/graph", { params: { path: { workflow }, query: { version } } }),
  );
}

function statesOf(steps: readonly Step[]): ReadonlyMap<string, StepModel> {
  return new Map(steps.map((step) => [step.name, stateOf(step)]));
}

function stateOf(step: Step): StepModel {
  return {
    ...freshStep(step.name),
    status: step.status,
    attempts: step.attempts,
    agent: step.agent,
    protocol: step.protocol,
    error: failureOf(step.error),
    startedAt: step.started_at === null ? null : Date.parse(step.started_at),
    finishedAt: step.finished_at === null ? null : Date.parse(step.finished_at),
    items: step.items?.total ?? null,
    counts: step.items == null ? null : countsOf(step.items),
    child: step.child == null ? null : { run: step.child.run_id, workflow: step.workflow ?? "", version: null },
  };
}

function countsOf({ pending, running, waiting, completed, failed, skipped, cancelled }: Items): ItemCounts {
  return {
    PENDING: pending,
    RUNNING: running,
    WAITING: waiting,
    COMPLETED: completed,
    FAILED: failed,
    SKIPPED: skipped,
    CANCELLED: cancelled,
    OUTCOME_UNKNOWN: 0,
  };
}
