/** The graphs and states of expanded child runs. */

import { type QueryClient, queryOptions, useQueries, useQueryClient } from "@tanstack/react-query";
import { useMemo, useRef } from "react";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import { type Graph, graphOf, parentOf } from "../graph/plan.ts";
import { eventPage } from "./eventPage.ts";
import { apply, freshStep, isFinal, NOTHING, type RunModel, statusIn, type StepModel } from "./model.ts";

type Run = components["schemas"]["Run"];

export interface ChildGraph {
  readonly run: string;
  readonly graph: Graph;
  readonly model: RunModel;
  /** As the graph shows them: pending steps of an ended child run count as cancelled. */
  readonly states: ReadonlyMap<string, StepModel>;
}

// Polled, because a stream for each would use up the browser's connections.
const LOOK_AGAIN_MS = 1_000;
const FRESH_MS = 1_000;
const PAGE = 1_000;

/** By node id, as in `open`. Nested child runs are available after their parents. */
export function useChildGraphs(model: RunModel, open: ReadonlySet<string>): ReadonlyMap<string, ChildGraph> {
  const queries = useQueryClient();
  const wanted = [...open].flatMap((node) => {
    const run = isAllOpen(node, open) ? runBegunBy(node, model, queries) : null;
    return run === null ? [] : [{ node, run }];
  });
  const histories = useQueries({ queries: wanted.map(({ run }) => historyQuery(run)) });
  const runs = useQueries({ queries: wanted.map(({ run }) => runQuery(run)) });
  const graphs = useQueries({
    queries: runs.map(({ data }) => ({
      queryKey: ["graph", data?.workflow.name, data?.workflow.version],
      queryFn: () => readGraph(data!.workflow.name, data!.workflow.version),
      enabled: data !== undefined,
      staleTime: Infinity,
    })),
  });
  const kept = useRef<ReadonlyMap<string, ChildGraph>>(new Map());
  const shown = graphs.map(({ data }, place) =>
    data === undefined ? undefined : (graphOf(data, runs[place]?.data?.block) ?? undefined),
  );
  const pieces = wanted.flatMap(({ node, run }, place) => [node, run, histories[place]?.data, shown[place]]);
  // The number of parts varies, so they are compared one by one instead of as hook dependencies.
  const stable = useStable(pieces);
  return useMemo(() => {
    const pictures = new Map<string, ChildGraph>();
    wanted.forEach(({ node, run }, place) => {
      const [told, graph] = [histories[place]?.data, shown[place]];
      if (told !== undefined && graph !== undefined)
        pictures.set(node, { run, graph, model: told, states: statesOf(graph, told) });
    });
    if (pictures.size > 0 || kept.current.size > 0) kept.current = pictures;
    return kept.current;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `stable` changes with each of its parts.
  }, [stable]);
}

/** Steps in a collapsed step are not shown. */
function isAllOpen(node: string, open: ReadonlySet<string>): boolean {
  const { node: parent } = parentOf(node);
  return open.has(node) && (parent === null || isAllOpen(parent, open));
}

/** The child run of a node; null if there is none, or if its parent is not loaded yet. */
function runBegunBy(id: string, model: RunModel, queries: QueryClient): string | null {
  const { node, name } = parentOf(id);
  const above = node === null ? null : runBegunBy(node, model, queries);
  const told = node === null ? model : above === null ? undefined : queries.getQueryData(historyQuery(above).queryKey);
  const state = told?.steps.get(name);
  return state === undefined || state.items !== null ? null : (state.child?.run ?? null);
}

/** Keeps the identity of an array whose parts are unchanged. */
function useStable(parts: readonly unknown[]): readonly unknown[] {
  const kept = useRef(parts);
  if (kept.current.length !== parts.length || kept.current.some((part, place) => part !== parts[place]))
    kept.current = parts;
  return kept.current;
}

/** The run without the inputs and outputs of its steps; an ended run is loaded once. */
export function runQuery(run: string) {
  return queryOptions({
    queryKey: ["run", run],
    queryFn: ({ signal }): Promise<Run> =>
      body(api.GET("/api/v1/runs/{run}", { params: { path: { run }, query: { step_payloads: false } }, signal })),
    staleTime: ({ state }) => (state.data !== undefined && isFinal(state.data.status) ? Infinity : FRESH_MS),
  });
}

/** Polls the events of a child run until it ends. Only new events are loaded. */
function historyQuery(run: string) {
  const queryKey = ["run", run, "model"];
  return queryOptions({
    queryKey,
    queryFn: ({ client, signal }) => readOn(run, client.getQueryData<RunModel>(queryKey) ?? NOTHING, signal),
    staleTime: ({ state }) => (isOver(state.data) ? Infinity : FRESH_MS),
    refetchInterval: ({ state }) => (isOver(state.data) ? false : LOOK_AGAIN_MS),
  });
}

function isOver(model: RunModel | undefined): boolean {
  return model !== undefined && isFinal(model.status);
}

async function readOn(run: string, known: RunModel, signal: AbortSignal): Promise<RunModel> {
  let model = known;
  for (;;) {
    const { events, isLast } = await eventPage(run, { limit: PAGE, after: model.seq }, signal);
    model = apply(model, events);
    if (isLast) return model;
  }
}

export function readGraph(workflow: string, version: number): Promise<Graph> {
  return body(api.GET("/api/v1/workflows/{workflow}/graph", { params: { path: { workflow }, query: { version } } }));
}

/** The graph of a run: of the workflow, or of the block that it runs. */
export function blockGraph(whole: Graph, block: string | undefined): Graph {
  const graph = graphOf(whole, block);
  if (graph === null) throw new Error(`The workflow version has no block ${block}.`);
  return graph;
}

function statesOf({ steps }: Graph, model: RunModel): ReadonlyMap<string, StepModel> {
  return new Map(
    steps.map(({ name }) => {
      const state = model.steps.get(name) ?? freshStep(name);
      const status = statusIn(model.status, state);
      return [name, status === state.status ? state : { ...state, status }];
    }),
  );
}
