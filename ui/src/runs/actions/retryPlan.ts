/**
 * The plan of a retry, by the rules of the server: outputs of completed steps are reused unless the step, or one that it
 * depends on, runs again. Pure.
 */

import type { components } from "../../api/schema.d.ts";

type Step = components["schemas"]["Step"];
type Edge = components["schemas"]["GraphEdge"];

export type Mode = "rest" | "step" | "all";

export interface RetryPlan {
  readonly kept: readonly string[];
  readonly again: readonly string[];
  /** `for_each` steps of which only the incomplete items run again. */
  readonly halfDone: readonly string[];
}

export function retryPlan(
  steps: readonly Step[],
  edges: readonly Edge[],
  mode: Mode,
  from: string | null,
  inputChanged: boolean,
): RetryPlan {
  const chosen = mode === "step" && from !== null ? after(edges, from) : new Set<string>();
  const isKept = (step: Step) => mode !== "all" && step.status === "COMPLETED" && !chosen.has(step.name);
  const kept = new Set(steps.filter(isKept).map((step) => step.name));
  const again = steps.filter((step) => !kept.has(step.name));
  const needs = (name: string) => edges.filter((edge) => edge.to === name).map((edge) => edge.from);
  const halfDone = again.filter(
    (step) =>
      mode !== "all" &&
      !inputChanged &&
      !chosen.has(step.name) &&
      (step.items?.completed ?? 0) > 0 &&
      needs(step.name).every((need) => kept.has(need)),
  );
  return { kept: [...kept], again: again.map((step) => step.name), halfDone: halfDone.map((step) => step.name) };
}

/** The step and all that depend on it. */
function after(edges: readonly Edge[], from: string): ReadonlySet<string> {
  const found = new Set([from]);
  for (const name of found) {
    for (const edge of edges) {
      if (edge.from === name) found.add(edge.to);
    }
  }
  return found;
}
