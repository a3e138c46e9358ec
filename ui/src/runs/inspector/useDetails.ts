/** Loads the record of the run, a step or an item, and refetches it when its events change it. */

import { useQuery } from "@tanstack/react-query";

import { api, body } from "../../api/client.ts";
import type { components } from "../../api/schema.d.ts";
import type { RunModel, StepModel } from "../model.ts";
import { runQuery } from "../useChildGraphs.ts";

export type Step = components["schemas"]["Step"];

export function stepIn(model: RunModel, step: string): StepModel | null {
  return model.steps.get(step) ?? model.items.get(step) ?? null;
}

/** Changes whenever the record of the step changes. */
export function movesOf(model: RunModel, step: string | null): string {
  const at = step === null ? null : stepIn(model, step);
  if (at === null) return `${model.status} ${model.startedAt} ${model.finishedAt}`;
  return `${at.status} ${at.attempts} ${at.startedAt} ${at.finishedAt} ${at.spans.length}`;
}

export function isOver(model: RunModel, step: string | null): boolean {
  if (model.finishedAt !== null) return true;
  return step !== null && (stepIn(model, step)?.finishedAt ?? null) !== null;
}

/** Whether an attempt may have failed, so that its events are needed. */
export function mayHaveFailed(model: RunModel, step: string, known: Step | undefined): boolean {
  if (known !== undefined && (known.attempts > 1 || known.error !== null)) return true;
  const at = stepIn(model, step);
  return (
    at !== null &&
    (at.error !== null || at.spans.some(({ kind, failed }) => failed || kind === "backoff" || kind === "unknown"))
  );
}

/** Refetched by the run page when the run changes. */
export function useRunDetail(run: string) {
  return useQuery({ ...runQuery(run), refetchOnMount: false });
}

export function useStepDetail(run: string, step: string, model: RunModel) {
  return useQuery({
    queryKey: ["run", run, "step", step, movesOf(model, step)],
    queryFn: ({ signal }) =>
      body(api.GET("/api/v1/runs/{run}/steps/{step}", { params: { path: { run, step } }, signal })),
    placeholderData: (before, query) => (query?.queryKey[1] === run && query.queryKey[3] === step ? before : undefined),
  });
}
