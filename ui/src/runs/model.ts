/**
 * The state of a run, computed from its events: the status of every step, and how its attempts spent their time.
 *
 * Pure. Events arrive in order and once (`api/stream.ts`). The same events give the same model, however they are batched.
 * Unchanged steps keep their identity, so that their components do not rerender.
 */

import type { RunEvent } from "../api/eventStream.ts";

export type RunStatus =
  "PENDING" | "RUNNING" | "WAITING" | "PAUSED" | "COMPENSATING" | "COMPLETED" | "FAILED" | "CANCELLED";
export type StepStatus =
  "PENDING" | "RUNNING" | "WAITING" | "COMPLETED" | "FAILED" | "SKIPPED" | "CANCELLED" | "OUTCOME_UNKNOWN";

/**
 * What a step spent a period of time on. Without an end, it is ongoing.
 *
 * `queued`: ready to start, but waiting for capacity. `call`: the agent is called. `remote`: the agent works on its remote
 * task. `child`: a child run. `items`: the items of a `for_each`. `backoff`: until the next attempt. `person`: until a
 * person replies. `dormant`: until a time or an event. `unknown`: until a person resolves the unknown outcome. `action`: the step does
 * something itself.
 */
export type SpanKind =
  "queued" | "call" | "remote" | "child" | "items" | "action" | "backoff" | "person" | "dormant" | "unknown";

export interface Span {
  readonly kind: SpanKind;
  readonly attempt: number;
  readonly from: number;
  readonly to: number | null;
  readonly failed: boolean;
}

export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly fix: string;
  readonly step: string | null;
  readonly attempt: number | null;
  /** The index of the item that made a `for_each` step fail. */
  readonly causeItem: number | null;
  readonly detail: unknown;
}

export interface WaitingFor {
  readonly kind:
    | "input"
    | "auth"
    | "retry"
    | "remote"
    | "outcome"
    | "time"
    | "event"
    | "person"
    | "agent"
    | "cache"
    | "compensation";
  readonly text: string;
  readonly until: number | null;
}

/** Whether the step continues without a person, and nothing is done for it meanwhile. */
export const isForTheWorld = (kind: WaitingFor["kind"]): boolean =>
  kind === "time" || kind === "event" || kind === "agent" || kind === "cache";

/** Whether a person can answer in the inbox. */
export const isForAPerson = (kind: WaitingFor["kind"] | undefined): boolean =>
  kind === "input" || kind === "auth" || kind === "person" || kind === "compensation";

/** The number of items of a `for_each` step by status. */
export type ItemCounts = Readonly<Record<StepStatus, number>>;

/** The latest child run of a step. */
export interface ChildRun {
  readonly run: string;
  readonly workflow: string;
  readonly version: number | null;
}

export interface StepModel {
  readonly name: string;
  readonly status: StepStatus;
  readonly attempts: number;
  /** How many times its agent was asked to correct its output. */
  readonly repairs: number;
  readonly agent: string | null;
  readonly protocol: string | null;
  /** Why it was skipped or cancelled, or that its output was reused. */
  readonly reason: string | null;
  readonly error: Failure | null;
  readonly waitingFor: WaitingFor | null;
  readonly spans: readonly Span[];
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** The number of items of a started `for_each` step, and their statuses. */
  readonly items: number | null;
  readonly counts: ItemCounts | null;
  readonly child: ChildRun | null;
  /** The last round of a step that is repeated; null if it is not. */
  readonly round: number | null;
  /** Its output is reused from the run that this one retries. */
  readonly kept: boolean;
  /** It failed, and the run continues. */
  readonly handled: boolean;
  /** The latest progress report of the agent. */
  readonly progress: string | null;
}

export interface Pause {
  readonly from: number;
  readonly to: number | null;
}

export interface RunModel {
  readonly seq: number;
  readonly status: RunStatus;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** The sequence number of the last event. */
  readonly lastAt: number | null;
  readonly cancelRequestedAt: number | null;
  readonly error: Failure | null;
  /** Whether the work of the run is being undone, or was. `FAILED`: a person gave up. */
  readonly compensation: "RUNNING" | "COMPLETED" | "FAILED" | null;
  readonly pauses: readonly Pause[];
  readonly steps: ReadonlyMap<string, StepModel>;
  /** Items of `for_each` steps by name, `step[17]`. */
  readonly items: ReadonlyMap<string, StepModel>;
}

export const NOTHING: RunModel = {
  seq: 0,
  status: "PENDING",
  startedAt: null,
  finishedAt: null,
  lastAt: null,
  cancelRequestedAt: null,
  error: null,
  compensation: null,
  pauses: [],
  steps: new Map(),
  items: new Map(),
};

const NO_ITEMS: ItemCounts = {
  PENDING: 0,
  RUNNING: 0,
  WAITING: 0,
  COMPLETED: 0,
  FAILED: 0,
  SKIPPED: 0,
  CANCELLED: 0,
  OUTCOME_UNKNOWN: 0,
};

export function freshStep(name: string): StepModel {
  return {
    name,
    status: "PENDING",
    attempts: 0,
    repairs: 0,
    agent: null,
    protocol: null,
    reason: null,
    error: null,
    waitingFor: null,
    spans: [],
    startedAt: null,
    finishedAt: null,
    items: null,
    counts: null,
    child: null,
    round: null,
    kept: false,
    handled: false,
    progress: null,
  };
}

/** The step of the item `step[17]`; returns the name of a step unchanged. */
export function ownerOf(name: string): string {
  const bracket = name.indexOf("[");
  return bracket < 0 ? name : name.slice(0, bracket);
}

/** 17 for `step[17]`; null for a step. */
export function indexOf(name: string): number | null {
  const bracket = name.indexOf("[");
  return bracket < 0 ? null : Number(name.slice(bracket + 1, -1));
}

export function stepOf(model: RunModel, name: string): StepModel | undefined {
  return model.steps.get(name) ?? model.items.get(name);
}

const COMPENSATION = "compensate:";

/** Whether a step or an item undoes another one. */
export function isCompensation(name: string): boolean {
  return name.startsWith(COMPENSATION);
}

/** The compensations that have started, in that order. */
export function compensationsOf({ steps, items }: RunModel): readonly StepModel[] {
  return [...steps.values(), ...items.values()]
    .filter(({ name }) => isCompensation(name))
    .sort((one, other) => (one.startedAt ?? Infinity) - (other.startedAt ?? Infinity));
}

export function isFinal(status: RunStatus | StepStatus): boolean {
  return status === "COMPLETED" || status === "FAILED" || status === "CANCELLED" || status === "SKIPPED";
}

/** The status of a step as in the REST API: pending steps of an ended run count as cancelled. */
export function statusIn(run: RunStatus, step: StepModel | null | undefined): StepStatus {
  const status = step?.status ?? "PENDING";
  return status === "PENDING" && isFinal(run) ? "CANCELLED" : status;
}

/** The model after these events. Events that it already contains change nothing. */
export function apply(model: RunModel, events: readonly RunEvent[]): RunModel {
  const news = events.filter((event) => event.seq > model.seq);
  if (news.length === 0) return model;
  const steps = new Map(model.steps);
  // The items are copied only when one of them changes, because there may be thousands.
  let items = model.items as Map<string, StepModel>;
  let run: RunModel = model;
  for (const event of news) {
    const at = Date.parse(event.at);
    const name = event.data["step"];
    if (typeof name !== "string") {
      run = runAfter(run, event, at);
    } else if (indexOf(name) === null) {
      steps.set(name, stepAfter(steps.get(name) ?? freshStep(name), event, at));
    } else {
      if (items === model.items) items = new Map(items);
      const before = items.get(name) ?? freshStep(name);
      const after = stepAfter(before, event, at);
      items.set(name, after);
      const owner = steps.get(ownerOf(name));
      if (owner !== undefined && after.status !== before.status) {
        steps.set(owner.name, { ...owner, counts: counted(owner, before.status, after.status) });
      }
    }
  }
  const last = news[news.length - 1]!;
  return { ...run, seq: last.seq, lastAt: Date.parse(last.at), steps, items };
}

function counted(owner: StepModel, before: StepStatus, after: StepStatus): ItemCounts {
  const counts = owner.counts ?? NO_ITEMS;
  return { ...counts, [before]: counts[before] - 1, [after]: counts[after] + 1 };
}

function runAfter(run: RunModel, event: RunEvent, at: number): RunModel {
  switch (event.type) {
    case "RunStarted":
      return { ...run, status: "RUNNING", startedAt: at };
    case "RunPaused":
      return { ...run, status: "PAUSED", pauses: [...run.pauses, { from: at, to: null }] };
    case "RunResumed":
      return {
        ...run,
        status: run.compensation === "RUNNING" ? "COMPENSATING" : "RUNNING",
        pauses: pausesUntil(run.pauses, at),
      };
    case "RunCancelRequested":
      return { ...run, status: "RUNNING", cancelRequestedAt: at, pauses: pausesUntil(run.pauses, at) };
    case "RunContinued":
      return { ...run, status: "RUNNING" };
    case "RunWaiting":
      return { ...run, status: "WAITING" };
    case "RunCompensating":
      return {
        ...run,
        status: "COMPENSATING",
        compensation: "RUNNING",
        error: event.data["error"] === undefined ? run.error : failureOf(event.data["error"]),
        // A run can be undone after its end.
        finishedAt: null,
        pauses: pausesUntil(run.pauses, at),
      };
    case "RunCompensated":
      // The event that ends the run follows, unless it had ended before.
      return {
        ...run,
        status: run.error === null ? "CANCELLED" : "FAILED",
        compensation: event.data["status"] === "FAILED" ? "FAILED" : "COMPLETED",
        finishedAt: at,
      };
    case "RunCompleted":
      return { ...run, status: "COMPLETED", finishedAt: at };
    case "RunFailed":
      return {
        ...run,
        status: "FAILED",
        finishedAt: at,
        error: failureOf(event.data["error"]),
        pauses: pausesUntil(run.pauses, at),
      };
    case "RunCancelled":
      return { ...run, status: "CANCELLED", finishedAt: at, pauses: pausesUntil(run.pauses, at) };
    default:
      // Ignore event types of newer servers.
      return run;
  }
}

function pausesUntil(pauses: readonly Pause[], at: number): readonly Pause[] {
  return pauses.map((pause) => (pause.to === null ? { ...pause, to: at } : pause));
}

function stepAfter(step: StepModel, event: RunEvent, at: number): StepModel {
  const data = event.data;
  const attempt = typeof data["attempt"] === "number" ? data["attempt"] : step.attempts;
  const protocol = typeof data["protocol"] === "string" ? data["protocol"] : step.protocol;
  const next = (kind: SpanKind, which = attempt, failed = false) => [
    ...closed(step.spans, at, failed),
    { kind, attempt: which, from: at, to: null, failed: false },
  ];
  switch (event.type) {
    case "StepStarted":
      return { ...begun(step, attempt, at), agent: textOf(data["agent"]), spans: next("call") };
    case "StepAgentSought":
    case "StepOutputSought":
      return { ...step, status: "WAITING", waitingFor: waitOf(data["waiting_for"]), spans: next("dormant") };
    case "StepAgentChosen":
    case "StepHedgeWon":
      return { ...step, agent: textOf(data["agent"]) };
    case "StepOutputClaimed":
      return { ...step, waitingFor: null };
    case "StepFromCache":
      return { ...ended(step, "COMPLETED", at), kept: true, reason: "Output reused from the cache." };
    case "StepFailedOver":
      return { ...step, status: "PENDING", waitingFor: null, spans: next("queued", attempt, true) };
    case "StepBegan":
      return { ...begun(step, attempt, at), spans: next("action") };
    case "StepChildStarted":
      return {
        ...begun(step, attempt, at),
        child: {
          run: String(data["run_id"]),
          workflow: String(data["workflow"]),
          version: typeof data["version"] === "number" ? data["version"] : null,
        },
        round: typeof data["round"] === "number" ? data["round"] : step.round,
        spans: next("child"),
      };
    case "StepRoundEnded": {
      const until = typeof data["due"] === "string" ? Date.parse(data["due"]) : null;
      const spans = until === null ? closed(step.spans, at) : next("dormant");
      if (until === null) return { ...step, status: "PENDING", waitingFor: null, spans };
      return { ...step, status: "WAITING", waitingFor: { kind: "time", text: "The next round", until }, spans };
    }
    case "StepFannedOut": {
      const items = Number(data["items"]);
      return { ...begun(step, 1, at), items, counts: { ...NO_ITEMS, PENDING: items }, spans: next("items", 1) };
    }
    case "StepWorking":
      return { ...step, status: "RUNNING", protocol, waitingFor: null, spans: next("remote") };
    case "StepProgress":
      return { ...step, progress: lastWords(data["news"]) ?? step.progress };
    case "StepRetryScheduled": {
      const error = failureOf(data["error"]);
      const until = typeof data["due"] === "string" ? Date.parse(data["due"]) : null;
      return {
        ...step,
        status: "WAITING",
        protocol,
        error,
        waitingFor: { kind: "retry", text: error?.message ?? "", until },
        spans: next("backoff", attempt, true),
      };
    }
    case "StepWaiting": {
      const waitingFor = waitOf(data["waiting_for"]);
      const spans = next(isForTheWorld(waitingFor.kind) ? "dormant" : "person");
      return { ...step, status: "WAITING", protocol, waitingFor, spans };
    }
    case "StepRepairRequested":
      return {
        ...step,
        status: "PENDING",
        protocol,
        waitingFor: null,
        repairs: typeof data["repair"] === "number" ? data["repair"] : step.repairs + 1,
        spans: next("queued"),
      };
    case "StepContinued":
      return { ...step, status: "RUNNING", waitingFor: null, spans: next("child", step.attempts) };
    case "StepReplied":
      return { ...step, status: "PENDING", waitingFor: null, spans: next("queued") };
    case "StepRequeued":
    case "StepOutcomeResolved":
      return { ...step, status: "PENDING", waitingFor: null, spans: next("queued", step.attempts + 1) };
    case "StepOutcomeUnknown": {
      const error = failureOf(data["error"]);
      return {
        ...step,
        status: "OUTCOME_UNKNOWN",
        error,
        waitingFor: { kind: "outcome", text: error?.message ?? "", until: null },
        spans: next("unknown", attempt, true),
      };
    }
    case "StepCompensationFailed": {
      const error = failureOf(data["error"]);
      const waitingFor: WaitingFor = { kind: "compensation", text: error?.message ?? "", until: null };
      return { ...step, status: "WAITING", protocol, error, waitingFor, spans: next("person", attempt, true) };
    }
    case "StepCompensationRetried":
      return { ...step, status: "PENDING", waitingFor: null, spans: next("queued", step.attempts + 1) };
    case "StepKept":
      return { ...ended(step, "COMPLETED", at), kept: true, reason: "Output reused from the original run." };
    case "StepCompleted":
      return { ...ended(step, "COMPLETED", at), protocol, error: null };
    case "StepFailed":
      return {
        ...ended(step, "FAILED", at, true),
        protocol,
        error: failureOf(data["error"]),
        handled: data["handled"] === true,
      };
    case "StepSkipped":
      return { ...ended(step, "SKIPPED", at), reason: textOf(data["reason"]) };
    case "StepCancelled":
      return { ...ended(step, "CANCELLED", at), reason: textOf(data["reason"]) };
    default:
      return step;
  }
}

function begun(step: StepModel, attempt: number, at: number): StepModel {
  return {
    ...step,
    status: "RUNNING",
    attempts: attempt,
    startedAt: step.startedAt ?? at,
    error: null,
    waitingFor: null,
    progress: null,
  };
}

function ended(step: StepModel, status: StepStatus, at: number, failed = false): StepModel {
  return { ...step, status, waitingFor: null, progress: null, spans: closed(step.spans, at, failed), finishedAt: at };
}

/** Whether a span of this kind can fail; waiting cannot. */
export const WORK: ReadonlySet<SpanKind> = new Set(["call", "remote", "child", "items", "action"]);

function closed(spans: readonly Span[], at: number, failed = false): readonly Span[] {
  const last = spans[spans.length - 1];
  if (last === undefined || last.to !== null) return spans;
  return [...spans.slice(0, -1), { ...last, to: at, failed: failed && WORK.has(last.kind) }];
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

export function failureOf(value: unknown): Failure | null {
  if (typeof value !== "object" || value === null) return null;
  const { code, message, fix, step, attempt, cause_item: causeItem, detail } = value as Record<string, unknown>;
  return {
    code: textOf(code) ?? "",
    message: textOf(message) ?? "",
    fix: textOf(fix) ?? "",
    step: textOf(step),
    // 0 if it failed before its first attempt.
    attempt: typeof attempt === "number" && attempt > 0 ? attempt : null,
    causeItem: typeof causeItem === "number" ? causeItem : null,
    detail,
  };
}

const WAITING_KINDS: readonly WaitingFor["kind"][] = ["auth", "time", "event", "person", "outcome", "agent", "cache"];

function waitOf(value: unknown): WaitingFor {
  const { kind, text, until } = (value ?? {}) as Record<string, unknown>;
  return {
    kind: WAITING_KINDS.find((known) => known === kind) ?? "input",
    text: textOf(text) ?? "",
    until: typeof until === "string" ? Date.parse(until) : null,
  };
}

function lastWords(news: unknown): string | null {
  if (!Array.isArray(news)) return null;
  for (let place = news.length - 1; place >= 0; place--) {
    const text = (news[place] as { text?: unknown }).text;
    if (typeof text === "string" && text !== "") return text;
  }
  return null;
}
