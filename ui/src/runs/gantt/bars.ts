/** The bars of a row: how its step spent its time, including the time in the queue. */

import type { components } from "../../api/schema.d.ts";
import type { Graph } from "../../graph/plan.ts";
import { isFinal, type RunModel, type Span, type StepModel } from "../model.ts";
import type { CallTimes } from "./useCallTimes.ts";

/** The steps that a step depends on. */
export interface Wait {
  readonly needs: readonly string[];
  readonly join: components["schemas"]["GraphJoin"] | null;
}

/** By step name. */
export function waitsOf({ steps, edges }: Graph): ReadonlyMap<string, Wait> {
  const needs = new Map<string, string[]>(steps.map(({ name }) => [name, []]));
  for (const { from, to } of edges) needs.get(to)?.push(from);
  return new Map(steps.map(({ name, join }) => [name, { needs: needs.get(name)!, join }]));
}

/** When a step became ready to start; null if it did not queue, or is not ready yet. */
export function queuedFrom(model: RunModel, step: StepModel | null, wait: Wait | undefined): number | null {
  if (wait === undefined || (step === null && isFinal(model.status))) return null;
  if (step !== null && isFinal(step.status) && step.spans.length === 0) return null;
  return readyAt(model, wait);
}

/** When the dependencies of a step ended; null if they have not, or if it is unknown. */
function readyAt(model: RunModel, { needs, join }: Wait): number | null {
  let ready = model.startedAt;
  const joined: number[] = [];
  for (const need of needs) {
    const state = model.steps.get(need);
    if (join?.of.includes(need)) {
      if (state?.status === "COMPLETED" && state.finishedAt !== null) joined.push(state.finishedAt);
    } else if (state?.finishedAt == null) {
      return null;
    } else {
      ready = Math.max(ready ?? 0, state.finishedAt);
    }
  }
  if (join === null) return ready;
  const decided = joined.sort((one, other) => one - other)[join.quorum - 1];
  return decided === undefined ? null : Math.max(ready ?? 0, decided);
}

/** The spans of a step, with the queueing time separated from the calls. */
export function barsOf(step: StepModel, ready: number | null, calls: CallTimes | undefined): readonly Span[] {
  const bars: Span[] = [];
  const first = step.spans[0];
  if (ready !== null && (first === undefined ? step.status === "PENDING" : first.from > ready)) {
    bars.push({ kind: "queued", attempt: 1, from: ready, to: first?.from ?? null, failed: false });
  }
  for (const span of step.spans) {
    const called = span.kind === "call" ? calledAt(span, calls) : null;
    if (called === null || called <= span.from) {
      bars.push(span);
    } else {
      bars.push({ ...span, kind: "queued", to: called, failed: false }, { ...span, from: called });
    }
  }
  return bars;
}

function calledAt(span: Span, calls: CallTimes | undefined): number | null {
  for (const at of calls?.get(span.attempt) ?? []) {
    if (at >= span.from && (span.to === null || at <= span.to)) return at;
  }
  return null;
}
