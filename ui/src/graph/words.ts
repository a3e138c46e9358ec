/** How a step stands, in a few words. */

import { lookOf } from "../app/StatusBadge.tsx";
import type { StepModel, StepStatus } from "../runs/model.ts";

export function progressOf(status: StepStatus, state: StepModel | null): string {
  const { word } = lookOf(status);
  if (state === null || state.status !== status) return status === "CANCELLED" ? "Never began" : word;
  const words = [state.items === null || state.counts === null ? word : `${word} ${itemsOf(state.items, state.counts)}`];
  if (state.kept) words.push("kept");
  if (state.handled) words.push("handled");
  if (state.attempts > 1) words.push(`attempt ${state.attempts}`);
  if (status === "WAITING" && state.waitingFor !== null) {
    words.push(state.waitingFor.kind === "retry" ? "tries again" : "for a person");
  }
  return words.join(" · ");
}

function itemsOf(total: number, counts: NonNullable<StepModel["counts"]>): string {
  const parts = [`${counts.COMPLETED}/${total}`];
  if (counts.FAILED > 0) parts.push(`${counts.FAILED} failed`);
  if (counts.RUNNING > 0) parts.push(`${counts.RUNNING} running`);
  return parts.join(" · ");
}
