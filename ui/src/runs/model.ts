/**
 * A run as its history tells it: the state of every step, and what each of its attempts did with its time.
 *
 * Pure. Events come in order and each once (`api/stream.ts`); the same history gives the same model, however it was
 * cut into pieces. Steps that nothing has happened to keep their identity, so that what shows them is not drawn again.
 */

import type { RunEvent } from "../api/stream.ts";

export type RunStatus = "PENDING" | "RUNNING" | "WAITING" | "PAUSED" | "COMPLETED" | "FAILED" | "CANCELLED";
export type StepStatus =
  | "PENDING"
  | "RUNNING"
  | "WAITING"
  | "COMPLETED"
  | "FAILED"
  | "SKIPPED"
  | "CANCELLED"
  | "OUTCOME_UNKNOWN";

/** What a step spent a stretch of time on; without an end it goes on. */
export interface Span {
  readonly kind: "call" | "remote" | "backoff" | "person" | "paused";
  readonly attempt: number;
  readonly from: number;
  readonly to: number | null;
  readonly failed: boolean;
}

export interface StepModel {
  readonly name: string;
  readonly status: StepStatus;
  readonly attempts: number;
  readonly protocol: string | null;
  readonly reason: string | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly spans: readonly Span[];
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** Of a step with `for_each`. */
  readonly items: number | null;
  /** The last words of the agent while it works. */
  readonly progress: string | null;
}

export interface RunModel {
  readonly seq: number;
  readonly status: RunStatus;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly steps: ReadonlyMap<string, StepModel>;
  /** Items of steps with `for_each`, by their names `step[17]`. */
  readonly items: ReadonlyMap<string, StepModel>;
}

export const NOTHING: RunModel = {
  seq: 0,
  status: "PENDING",
  startedAt: null,
  finishedAt: null,
  steps: new Map(),
  items: new Map(),
};

function fresh(name: string): StepModel {
  return {
    name,
    status: "PENDING",
    attempts: 0,
    protocol: null,
    reason: null,
    error: null,
    spans: [],
    startedAt: null,
    finishedAt: null,
    items: null,
    progress: null,
  };
}

/** The model after these events; those it knows already change nothing. */
export function apply(model: RunModel, events: readonly RunEvent[]): RunModel {
  const news = events.filter((event) => event.seq > model.seq);
  if (news.length === 0) return model;
  const steps = new Map(model.steps);
  const items = new Map(model.items);
  let { status, startedAt, finishedAt, seq } = model;
  for (const event of news) {
    seq = event.seq;
    const at = Date.parse(event.at);
    const name = event.data["step"];
    if (typeof name === "string") {
      const shelf = name.includes("[") ? items : steps;
      shelf.set(name, stepAfter(shelf.get(name) ?? fresh(name), event, at));
      continue;
    }
    switch (event.type) {
      case "RunStarted":
        status = "RUNNING";
        startedAt = at;
        break;
      case "RunPaused":
        status = "PAUSED";
        break;
      case "RunResumed":
      case "RunContinued":
        status = "RUNNING";
        break;
      case "RunWaiting":
        status = "WAITING";
        break;
      case "RunCompleted":
        status = "COMPLETED";
        finishedAt = at;
        break;
      case "RunFailed":
        status = "FAILED";
        finishedAt = at;
        break;
      case "RunCancelled":
        status = "CANCELLED";
        finishedAt = at;
        break;
      default:
        // A newer server tells of things this page does not know; the rest of the history still counts.
        break;
    }
  }
  return { seq, status, startedAt, finishedAt, steps, items };
}

function stepAfter(step: StepModel, event: RunEvent, at: number): StepModel {
  const data = event.data;
  const attempt = typeof data["attempt"] === "number" ? data["attempt"] : step.attempts;
  const protocol = typeof data["protocol"] === "string" ? data["protocol"] : step.protocol;
  switch (event.type) {
    case "StepStarted":
      return {
        ...step,
        status: "RUNNING",
        attempts: attempt,
        startedAt: step.startedAt ?? at,
        finishedAt: null,
        error: null,
        spans: [...closed(step.spans, at), { kind: "call", attempt, from: at, to: null, failed: false }],
      };
    case "StepFannedOut":
      return { ...step, status: "RUNNING", startedAt: at, items: Number(data["items"]) };
    case "StepWorking":
      return {
        ...step,
        protocol,
        spans: [...closed(step.spans, at), { kind: "remote", attempt, from: at, to: null, failed: false }],
      };
    case "StepProgress":
      return { ...step, progress: lastWords(data["news"]) ?? step.progress };
    case "StepRetryScheduled":
      return {
        ...step,
        status: "WAITING",
        protocol,
        error: errorOf(data["error"]),
        spans: [...closed(step.spans, at, true), { kind: "backoff", attempt, from: at, to: null, failed: false }],
      };
    case "StepWaiting":
      return {
        ...step,
        status: "WAITING",
        protocol,
        spans: [...closed(step.spans, at), { kind: "person", attempt, from: at, to: null, failed: false }],
      };
    case "StepReplied":
    case "StepRequeued":
    case "StepOutcomeResolved":
      return { ...step, status: "PENDING", error: null, spans: closed(step.spans, at) };
    case "StepOutcomeUnknown":
      return { ...step, status: "OUTCOME_UNKNOWN", error: errorOf(data["error"]), spans: closed(step.spans, at, true) };
    case "StepKept":
      return { ...step, status: "COMPLETED", reason: "kept from the run before", finishedAt: at };
    case "StepCompleted":
      return { ...step, status: "COMPLETED", protocol, error: null, spans: closed(step.spans, at), finishedAt: at };
    case "StepFailed":
      return {
        ...step,
        status: "FAILED",
        protocol,
        error: errorOf(data["error"]),
        spans: closed(step.spans, at, true),
        finishedAt: at,
      };
    case "StepSkipped":
    case "StepCancelled":
      return {
        ...step,
        status: event.type === "StepSkipped" ? "SKIPPED" : "CANCELLED",
        reason: typeof data["reason"] === "string" ? data["reason"] : null,
        spans: closed(step.spans, at),
        finishedAt: at,
      };
    default:
      return step;
  }
}

function closed(spans: readonly Span[], at: number, failed = false): readonly Span[] {
  const last = spans[spans.length - 1];
  if (last === undefined || last.to !== null) return spans;
  return [...spans.slice(0, -1), { ...last, to: at, failed: failed && last.kind !== "backoff" }];
}

function errorOf(value: unknown): StepModel["error"] {
  if (typeof value !== "object" || value === null) return null;
  const { code, message } = value as { code?: unknown; message?: unknown };
  return { code: String(code ?? ""), message: String(message ?? "") };
}

function lastWords(news: unknown): string | null {
  if (!Array.isArray(news)) return null;
  for (let place = news.length - 1; place >= 0; place--) {
    const text = (news[place] as { text?: unknown }).text;
    if (typeof text === "string" && text !== "") return text;
  }
  return null;
}
