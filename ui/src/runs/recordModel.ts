/**
 * Converts the REST record of a run to a run model, which has the statuses but not the spans of time.
 *
 * It is shown until the events are loaded. Pure.
 */

import type { components } from "../api/schema.d.ts";
import { failureOf, freshStep, type ItemCounts, NOTHING, type RunModel, type StepModel } from "./model.ts";

type Run = components["schemas"]["Run"];
type Step = Run["steps"][number];

export function recordModel(run: Run): RunModel {
  const begun = [...run.steps, ...(run.compensation?.steps ?? [])].filter(
    (step) => step.started_at !== null || step.finished_at !== null,
  );
  return {
    ...NOTHING,
    seq: run.last_seq,
    status: run.status,
    startedAt: moment(run.started_at),
    finishedAt: moment(run.finished_at),
    cancelRequestedAt: moment(run.cancel_requested_at),
    error: failureOf(run.error),
    compensation: run.compensation?.status ?? null,
    steps: new Map(begun.map((step) => [step.name, knownStep(step, run)])),
  };
}

function knownStep(step: Step, run: Run): StepModel {
  const { waiting_for: waiting, items, child } = step;
  return {
    ...freshStep(step.name),
    status: step.status,
    attempts: step.attempts,
    agent: step.agent === "" ? null : step.agent,
    protocol: step.protocol,
    error: failureOf(step.error),
    waitingFor: waiting === null ? null : { kind: waiting.kind, text: waiting.text, until: moment(waiting.until) },
    startedAt: moment(step.started_at),
    finishedAt: moment(step.finished_at),
    items: items?.total ?? null,
    counts: items == null ? null : countsOf(items),
    child: child == null ? null : { run: child.run_id, workflow: step.workflow ?? "", version: null },
    // A run completes only if every failure was handled.
    handled: step.status === "FAILED" && run.status === "COMPLETED",
  };
}

function countsOf(items: NonNullable<Step["items"]>): ItemCounts {
  return {
    PENDING: items.pending,
    RUNNING: items.running,
    WAITING: items.waiting,
    COMPLETED: items.completed,
    FAILED: items.failed,
    SKIPPED: items.skipped,
    CANCELLED: items.cancelled,
    OUTCOME_UNKNOWN: 0,
  };
}

function moment(time: string | null | undefined): number | null {
  return time == null ? null : Date.parse(time);
}
