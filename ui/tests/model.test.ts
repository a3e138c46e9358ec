import { describe, expect, test } from "vitest";

import type { RunEvent } from "../src/api/eventStream.ts";
import {
  apply,
  compensationsOf,
  failureOf,
  indexOf,
  NOTHING,
  ownerOf,
  type RunModel,
  statusIn,
  stepOf,
} from "../src/runs/model.ts";

const START = Date.parse("2026-03-01T10:00:00Z");

type Told = readonly [type: string] | readonly [type: string, data: Readonly<Record<string, unknown>>];

/** A history with an event each second: a type, and its data. */
function history(...events: readonly Told[]): RunEvent[] {
  return events.map(([type, data = {}], place) => ({
    seq: place + 1,
    type,
    at: new Date(START + place * 1_000).toISOString(),
    data,
  }));
}

function modelOf(...events: readonly Told[]): RunModel {
  return apply(NOTHING, history(...events));
}

const RETRIED = [
  ["RunStarted"],
  ["StepStarted", { step: "draft", attempt: 1, agent: "writer" }],
  ["StepRetryScheduled", { step: "draft", attempt: 1, due: "2026-03-01T10:00:30Z", error: { message: "503" } }],
  ["StepRequeued", { step: "draft" }],
  ["StepStarted", { step: "draft", attempt: 2, agent: "writer" }],
  ["StepWorking", { step: "draft", attempt: 2, protocol: "a2a-0.3" }],
  ["StepCompleted", { step: "draft", attempt: 2 }],
  ["RunCompleted"],
] as const;

const FANNED_OUT = [
  ["RunStarted"],
  ["StepFannedOut", { step: "each", items: 3 }],
  ["StepStarted", { step: "each[0]", attempt: 1, agent: "worker" }],
  ["StepStarted", { step: "each[1]", attempt: 1, agent: "worker" }],
  ["StepCompleted", { step: "each[0]", attempt: 1 }],
  ["StepFailed", { step: "each[1]", attempt: 1, error: { code: "agent_error", message: "no" } }],
] as const;

describe("a correction of an output", () => {
  test("is counted apart from the attempts", () => {
    const step = modelOf(
      ["RunStarted"],
      ["StepStarted", { step: "draft", attempt: 1, agent: "writer" }],
      ["StepRepairRequested", { step: "draft", attempt: 1, repair: 1, errors: ["output.data is missing"] }],
      ["StepStarted", { step: "draft", attempt: 1, agent: "writer" }],
      ["StepCompleted", { step: "draft", attempt: 1 }],
    ).steps.get("draft");
    expect(step).toMatchObject({ status: "COMPLETED", attempts: 1, repairs: 1 });
  });
});

describe("a run that is undone", () => {
  const undoing = [
    ["RunStarted"],
    ["StepCompleted", { step: "flight", attempt: 1 }],
    ["RunCompensating", { steps: 1, ends: "FAILED", error: { code: "full", message: "Full" } }],
    ["StepStarted", { step: "compensate:flight", attempt: 1, agent: "flights" }],
  ] as const;

  test("shows its compensations until it ends", () => {
    const model = modelOf(...undoing);
    expect(model).toMatchObject({ status: "COMPENSATING", compensation: "RUNNING", finishedAt: null });
    expect(compensationsOf(model).map(({ name, status }) => [name, status])).toEqual([
      ["compensate:flight", "RUNNING"],
    ]);
    const paused = modelOf(...undoing, ["RunPaused"], ["RunResumed"]);
    expect(paused.status).toBe("COMPENSATING");
    const ended = modelOf(
      ...undoing,
      ["StepCompleted", { step: "compensate:flight", attempt: 1 }],
      ["RunCompensated", { status: "COMPLETED" }],
      ["RunFailed", { error: { code: "full", message: "Full" } }],
    );
    expect(ended).toMatchObject({ status: "FAILED", compensation: "COMPLETED" });
  });

  test("waits for a person when a compensation has failed", () => {
    const failed = [
      "StepCompensationFailed",
      { step: "compensate:flight", attempt: 1, error: { code: "no" } },
    ] as const;
    expect(modelOf(...undoing, failed).steps.get("compensate:flight")).toMatchObject({
      status: "WAITING",
      waitingFor: { kind: "compensation" },
    });
    const again = modelOf(...undoing, failed, ["StepCompensationRetried", { step: "compensate:flight" }]);
    expect(again.steps.get("compensate:flight")).toMatchObject({ status: "PENDING", waitingFor: null });
  });
});

describe("the status of a run", () => {
  test("follows its events", () => {
    const statuses = ["RunStarted", "RunPaused", "RunResumed", "RunWaiting", "RunContinued", "RunCompleted"].map(
      (_, place, types) => modelOf(...types.slice(0, place + 1).map((type) => [type] as const)).status,
    );
    expect(statuses).toEqual(["RUNNING", "PAUSED", "RUNNING", "WAITING", "RUNNING", "COMPLETED"]);
  });

  test("records when a pause begins and ends", () => {
    const { pauses } = modelOf(["RunStarted"], ["RunPaused"], ["RunResumed"], ["RunPaused"]);
    expect(pauses).toEqual([
      { from: START + 1_000, to: START + 2_000 },
      { from: START + 3_000, to: null },
    ]);
  });

  test("ends a pause when a paused run is cancelled", () => {
    const model = modelOf(["RunStarted"], ["RunPaused"], ["RunCancelRequested"], ["RunCancelled"]);
    expect(model.status).toBe("CANCELLED");
    expect(model.cancelRequestedAt).toBe(START + 2_000);
    expect(model.pauses).toEqual([{ from: START + 1_000, to: START + 2_000 }]);
  });

  test("ignores events that this version of the page does not know", () => {
    const model = modelOf(["RunStarted"], ["RunTeleported"], ["StepTeleported", { step: "draft" }]);
    expect(model.status).toBe("RUNNING");
    expect(model.seq).toBe(3);
  });
});

describe("the spans of a step", () => {
  test("cover a retry from the first call to the result", () => {
    const step = modelOf(...RETRIED).steps.get("draft")!;
    expect(step.spans.map(({ kind, attempt, failed }) => [kind, attempt, failed])).toEqual([
      ["call", 1, true],
      ["backoff", 1, false],
      ["queued", 2, false],
      ["call", 2, false],
      ["remote", 2, false],
    ]);
    expect(step.spans.map(({ from, to }) => [(from - START) / 1_000, (to! - START) / 1_000])).toEqual([
      [1, 2],
      [2, 3],
      [3, 4],
      [4, 5],
      [5, 6],
    ]);
  });

  test("stay open while the step is at work", () => {
    const step = modelOf(...RETRIED.slice(0, 2)).steps.get("draft")!;
    expect(step.spans).toEqual([{ kind: "call", attempt: 1, from: START + 1_000, to: null, failed: false }]);
  });
});

describe("a step", () => {
  test("keeps its first start, its last attempt and its protocol", () => {
    const step = modelOf(...RETRIED).steps.get("draft")!;
    expect(step).toMatchObject({
      status: "COMPLETED",
      attempts: 2,
      agent: "writer",
      protocol: "a2a-0.3",
      startedAt: START + 1_000,
      finishedAt: START + 6_000,
      error: null,
      waitingFor: null,
    });
  });

  test("waits for a retry with the error of the failed attempt", () => {
    const step = modelOf(...RETRIED.slice(0, 3)).steps.get("draft")!;
    expect(step.status).toBe("WAITING");
    expect(step.waitingFor).toEqual({ kind: "retry", text: "503", until: Date.parse("2026-03-01T10:00:30Z") });
  });

  test("waits for a person, and goes back to the queue after the reply", () => {
    const asked = ["StepWaiting", { step: "draft", waiting_for: { kind: "auth", text: "Log in" } }] as const;
    const waiting = modelOf(...RETRIED.slice(0, 2), asked).steps.get("draft")!;
    expect(waiting.waitingFor).toEqual({ kind: "auth", text: "Log in", until: null });
    const replied = modelOf(...RETRIED.slice(0, 2), asked, ["StepReplied", { step: "draft" }]).steps.get("draft")!;
    expect([replied.status, replied.waitingFor, replied.spans.at(-1)!.kind]).toEqual(["PENDING", null, "queued"]);
  });

  test("shows the last progress text until it ends", () => {
    const progress = ["StepProgress", { step: "draft", news: [{ text: "half" }, { text: "" }] }] as const;
    expect(modelOf(...RETRIED.slice(0, 2), progress).steps.get("draft")!.progress).toBe("half");
    const ended = modelOf(...RETRIED.slice(0, 2), progress, ["StepCompleted", { step: "draft" }]);
    expect(ended.steps.get("draft")!.progress).toBeNull();
  });

  test("that never began is cancelled when its run ends", () => {
    expect(statusIn("RUNNING", undefined)).toBe("PENDING");
    expect(statusIn("FAILED", undefined)).toBe("CANCELLED");
    expect(statusIn("FAILED", modelOf(...RETRIED).steps.get("draft"))).toBe("COMPLETED");
  });
});

describe("items of a for_each step", () => {
  test("are counted by status", () => {
    const model = modelOf(...FANNED_OUT);
    expect(model.steps.get("each")!.counts).toMatchObject({ PENDING: 1, RUNNING: 0, COMPLETED: 1, FAILED: 1 });
    expect(model.steps.get("each")!.items).toBe(3);
  });

  test("are found by their names, apart from the steps", () => {
    const model = modelOf(...FANNED_OUT);
    expect([...model.steps.keys()]).toEqual(["each"]);
    expect(stepOf(model, "each[1]")!.status).toBe("FAILED");
    expect(stepOf(model, "each[2]")).toBeUndefined();
  });

  test("are named after their step", () => {
    expect([ownerOf("each[17]"), indexOf("each[17]")]).toEqual(["each", 17]);
    expect([ownerOf("each"), indexOf("each")]).toEqual(["each", null]);
  });
});

describe("applying events", () => {
  test("gives the same model however the history is cut", () => {
    const events = history(...FANNED_OUT, ["RunFailed", { error: { code: "step_failed", step: "each" } }]);
    const whole = apply(NOTHING, events);
    for (let cut = 0; cut <= events.length; cut++) {
      expect(apply(apply(NOTHING, events.slice(0, cut)), events.slice(cut))).toEqual(whole);
    }
  });

  test("ignores events that the model already has", () => {
    const events = history(...RETRIED);
    const model = apply(NOTHING, events);
    expect(apply(model, events.slice(2, 5))).toBe(model);
  });

  test("does not change the model that it starts from, and keeps untouched steps", () => {
    const before = modelOf(...FANNED_OUT);
    const frozen = structuredClone(before);
    const after = apply(before, [
      { seq: 99, type: "StepStarted", at: "2026-03-01T11:00:00Z", data: { step: "last", attempt: 1 } },
    ]);
    expect(before).toEqual(frozen);
    expect(after.steps.get("each")).toBe(before.steps.get("each"));
    expect(after.items).toBe(before.items);
  });
});

describe("an error", () => {
  test("has an attempt only if the step was called", () => {
    expect(failureOf({ code: "bad_input", attempt: 0 })!.attempt).toBeNull();
    expect(failureOf({ code: "agent_error", attempt: 2 })!.attempt).toBe(2);
  });

  test("without data is null", () => {
    expect([failureOf(null), failureOf(undefined), failureOf("text")]).toEqual([null, null, null]);
  });

  test("names the item that caused it", () => {
    expect(failureOf({ step: "each", cause_item: 0 })).toMatchObject({ step: "each", causeItem: 0 });
  });
});
