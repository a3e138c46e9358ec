/** The failures of a step's attempts, from its events. Pure. */

import type { components } from "../../api/schema.d.ts";
import type { RunEvent } from "../../api/eventStream.ts";

export type Failure = components["schemas"]["StepFailure"];

export interface AttemptEnd {
  readonly attempt: number;
  readonly failure: Failure;
  /** The start of the next attempt; null if none is scheduled. */
  readonly due: string | null;
}

const ENDINGS = new Set(["StepRetryScheduled", "StepFailed", "StepOutcomeUnknown"]);

/** The failed attempts in order. A step may fail before its first attempt. */
export function failedAttempts(events: readonly RunEvent[]): readonly AttemptEnd[] {
  const ends = new Map<number, AttemptEnd>();
  for (const { type, data } of events) {
    const attempt = data["attempt"];
    if (!ENDINGS.has(type) || typeof attempt !== "number" || attempt === 0) continue;
    ends.set(attempt, {
      attempt,
      failure: data["error"] as Failure,
      due: typeof data["due"] === "string" ? data["due"] : null,
    });
  }
  return [...ends.values()];
}
