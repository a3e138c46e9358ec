/** What the chart shows: a row for each step and each item that a reader has opened, and the bars of each. */

import type { components } from "../../api/schema.d.ts";
import type { Graph } from "../../graph/plan.ts";
import { type RunModel, type Span, type StepModel } from "../model.ts";
import type { CallTimes } from "./useCallTimes.ts";

type GraphStep = components["schemas"]["GraphStep"];

export interface Row {
  readonly name: string;
  /** Its place among the items of its step; null: a step. */
  readonly index: number | null;
  readonly opens: boolean;
  readonly open: boolean;
}

export function rowsOf(graph: Graph, totals: ReadonlyMap<string, number>, open: ReadonlySet<string>): readonly Row[] {
  return graph.steps.flatMap(({ name }) => {
    const total = totals.get(name) ?? 0;
    const isOpen = total > 0 && open.has(name);
    const rows: Row[] = [{ name, index: null, opens: total > 0, open: isOpen }];
    for (let index = 0; isOpen && index < total; index++) rows.push({ name: `${name}[${index}]`, index, opens: false, open: false });
    return rows;
  });
}

/** How many items each step has; the same map as long as no other step has fanned out. */
export function totalsOf(model: RunModel): string {
  return [...model.steps.values()].flatMap(({ name, items }) => (items === null ? [] : [`${name}=${items}`])).join(";");
}

export function readTotals(totals: string): ReadonlyMap<string, number> {
  const pairs = totals === "" ? [] : totals.split(";").map((pair) => pair.split("=") as [string, string]);
  return new Map(pairs.map(([name, items]) => [name, Number(items)]));
}

export function needsOf(graph: Graph): ReadonlyMap<string, readonly string[]> {
  const needs = new Map<string, string[]>(graph.steps.map(({ name }) => [name, []]));
  for (const { from, to } of graph.edges) needs.get(to)?.push(from);
  return needs;
}

/** When all that a step waits for was over; null: not yet, or it is not known. */
export function readyAt(model: RunModel, step: GraphStep, needs: readonly string[]): number | null {
  let ready = model.startedAt;
  const joined: number[] = [];
  for (const need of needs) {
    const state = model.steps.get(need);
    if (step.join?.of.includes(need)) {
      if (state?.status === "COMPLETED" && state.finishedAt !== null) joined.push(state.finishedAt);
    } else if (state?.finishedAt == null) {
      return null;
    } else {
      ready = Math.max(ready ?? 0, state.finishedAt);
    }
  }
  if (step.join === null) return ready;
  const decided = joined.sort((one, other) => one - other)[step.join.quorum - 1];
  return decided === undefined ? null : Math.max(ready ?? 0, decided);
}

/** The stretches of a step, with the time until its turn came told apart from the calls themselves. */
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
