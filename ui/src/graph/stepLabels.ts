/** Short texts for the status of a step. A step in the graph fits about twenty characters per line. */

import { appearanceOf } from "../app/StatusBadge.tsx";
import type { StepModel, StepStatus } from "../runs/model.ts";

export function progressOf(status: StepStatus, state: StepModel | null): string {
  const { word } = appearanceOf(status);
  if (status === "CANCELLED" && state?.finishedAt == null) return "Not started";
  if (state === null) return word;
  const running = state.counts?.RUNNING ?? 0;
  const words = [status === "RUNNING" && running > 0 ? `${running} running` : word];
  if (state.counts !== null && state.counts.FAILED > 0) words.push(`${state.counts.FAILED} failed`);
  if (state.kept) words.push("reused");
  if (state.handled) words.push("handled");
  if (status === "WAITING" && state.waitingFor !== null) {
    words.push(state.waitingFor.kind === "retry" ? "for retry" : "for a person");
  }
  return words.join(" · ");
}

/** The number of attempts and of completed items, or null if there is nothing to count. */
export function countOf(state: StepModel | null): string | null {
  if (state === null) return null;
  const words = state.attempts > 1 ? [`attempt ${state.attempts}`] : [];
  if (state.items !== null && state.counts !== null) words.push(`${state.counts.COMPLETED}/${state.items}`);
  return words.length === 0 ? null : words.join(" · ");
}
