/** Finds the waiting step of a run that a person can respond to. Pure. */

import { isForAPerson, type RunModel, type StepModel } from "../model.ts";

/** The selected step if it is waiting, otherwise the first waiting step. */
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
  return step.status === "WAITING" && isForAPerson(step.waitingFor?.kind);
}
