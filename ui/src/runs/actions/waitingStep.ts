/** Which step of a run a person can answer. Pure. */

import type { RunModel, StepModel } from "../model.ts";

/** The selected one if it waits; else, whatever is selected, the first that does. */
export function waitingStep(model: RunModel, selected: string | null): StepModel | null {
  let first: StepModel | null = null;
  for (const shelf of [model.steps, model.items]) {
    const chosen = selected === null ? undefined : shelf.get(selected);
    if (chosen !== undefined && waits(chosen)) return chosen;
    for (const step of shelf.values()) {
      if (first === null && waits(step)) first = step;
    }
  }
  return first;
}

function waits(step: StepModel): boolean {
  if (step.status === "OUTCOME_UNKNOWN") return true;
  return step.status === "WAITING" && (step.waitingFor?.kind === "input" || step.waitingFor?.kind === "auth");
}
