/** Short texts for the status of a step. A step in the graph fits about twenty characters per line. */

import { appearanceOf } from "../app/StatusBadge.tsx";
import type { components } from "../api/schema.d.ts";
import { isForTheWorld, type StepModel, type StepStatus, type WaitingFor } from "../runs/model.ts";

type StepKind = components["schemas"]["GraphStep"]["kind"];

/** What a step does that calls neither an agent nor a workflow. */
export const KIND_WORDS: Readonly<Record<Exclude<StepKind, "agent" | "workflow">, string>> = {
  steps: "Block",
  set: "Set values",
  sleep: "Sleep",
  wait_for: "Wait for event",
  ask: "Ask a person",
};

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
    words.push(waitWords(state.waitingFor.kind));
  }
  return words.join(" · ");
}

function waitWords(kind: WaitingFor["kind"]): string {
  if (kind === "retry") return "for retry";
  if (kind === "event") return "for an event";
  if (kind === "agent") return "for an agent";
  if (kind === "cache") return "for an equal step";
  return isForTheWorld(kind) ? "for a time" : "for a person";
}

/** The number of attempts and of completed items, or null if there is nothing to count. */
export function countOf(state: StepModel | null): string | null {
  if (state === null) return null;
  const words = state.round === null ? [] : [`round ${state.round}`];
  if (state.attempts > 1) words.push(`attempt ${state.attempts}`);
  if (state.items !== null && state.counts !== null) words.push(`${state.counts.COMPLETED}/${state.items}`);
  return words.length === 0 ? null : words.join(" · ");
}
