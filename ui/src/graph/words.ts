/** How a step stands, in a few words. */

import { lookOf } from "../app/StatusBadge.tsx";
import type { StepModel, StepStatus } from "../runs/model.ts";

export function progressOf(status: StepStatus, state: StepModel | null): string {
  const { word } = lookOf(status);
  if (status === "CANCELLED" && state?.finishedAt == null) return "Never began";
  if (state === null) return word;
  const words = state.items === null || state.counts === null ? [word] : itemsOf(word, state.items, state.counts);
  if (state.kept) words.push("kept");
  if (state.handled) words.push("handled");
  if (state.attempts > 1) words.push(`attempt ${state.attempts}`);
  if (status === "WAITING" && state.waitingFor !== null) {
    words.push(state.waitingFor.kind === "retry" ? "tries again" : "for a person");
  }
  return words.join(" · ");
}

/** How many failed comes before what may be cut off. */
function itemsOf(word: string, total: number, { COMPLETED, FAILED, RUNNING }: NonNullable<StepModel["counts"]>): string[] {
  const done = `${COMPLETED}/${total}`;
  const words = FAILED > 0 ? [word, `${FAILED} failed`, done] : [`${word} ${done}`];
  return RUNNING > 0 ? [...words, `${RUNNING} running`] : words;
}
