/** The runs that steps have begun and a reader has opened: their graphs, and how their steps stand. */

import { queryOptions, useQueries } from "@tanstack/react-query";
import { useMemo, useRef } from "react";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import type { Graph } from "../graph/plan.ts";
import { failureOf, freshStep, isFinal, type RunModel, type StepModel } from "./model.ts";

type Run = components["schemas"]["Run"];
type Step = components["schemas"]["Step"];

export interface ChildPicture {
  readonly run: string;
  readonly graph: Graph;
  readonly states: ReadonlyMap<string, StepModel>;
}

// A stream for each would use up the few connections that a browser has for one server.
const LOOK_AGAIN_MS = 1_000;
const FRESH_MS = 1_000;

export function useChildPictures(model: RunModel, open: ReadonlySet<string>): ReadonlyMap<string, ChildPicture> {
  const wanted = [...open].flatMap((step) => {
    const state = model.steps.get(step);
    return state?.child == null || state.items !== null ? [] : [{ step, run: state.child.run }];
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
  const pieces = wanted.flatMap(({ step, run }, place) => [step, run, runs[place]?.data, graphs[place]?.data]);
  return useMemo(() => {
    const pictures = new Map<string, ChildPicture>();
    wanted.forEach(({ step, run }, place) => {
      const [shown, graph] = [runs[place]?.data, graphs[place]?.data];
      if (shown !== undefined && graph !== undefined) pictures.set(step, { run, graph, states: statesOf(shown.steps) });
    });
    if (pictures.size > 0 || kept.current.size > 0) kept.current = pictures;
    return kept.current;
    // As many pieces as there are open steps: compared one by one, as React does, under one key.
  }, [useStable(pieces)]);
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
    child: step.child == null ? null : { run: step.child.run_id, workflow: step.workflow ?? "", version: null },
  };
}
