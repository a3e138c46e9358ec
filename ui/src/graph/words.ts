/** How a step stands, in a few words. */

import { lookOf } from "../app/StatusBadge.tsx";
import type { StepModel } from "../runs/model.ts";

export function progressOf(state: StepModel | null): string {
  const status = state?.status ?? "PENDING";
  if (state === null) return lookOf(status).word;
  const words = [lookOf(status).word];
  if (state.kept) words.push("kept");
  if (state.handled) words.push("handled");
  if (state.attempts > 1) words.push(`attempt ${state.attempts}`);
  if (status === "WAITING" && state.waitingFor !== null) {
    words.push(state.waitingFor.kind === "retry" ? "tries again" : "for a person");
  }
  if (state.items !== null && state.counts !== null) words.push(itemsOf(state.items, state.counts));
  return words.join(" · ");
}

function itemsOf(total: number, counts: NonNullable<StepModel["counts"]>): string {
  const done = `${counts.COMPLETED}/${total}`;
  const parts = [done];
  if (counts.FAILED > 0) parts.push(`${counts.FAILED} failed`);
  if (counts.RUNNING > 0) parts.push(`${counts.RUNNING} running`);
  return parts.join(", ");
}
