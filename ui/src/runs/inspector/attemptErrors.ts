/** What each attempt of a step came to, as the history tells it. Pure. */

import type { components } from "../../api/schema.d.ts";
import type { RunEvent } from "../../api/stream.ts";

export type Failure = components["schemas"]["StepFailure"];

export interface AttemptEnd {
  readonly attempt: number;
  readonly failure: Failure;
  /** When the next one begins; null: none was planned. */
  readonly due: string | null;
}

const ENDINGS = new Set(["StepRetryScheduled", "StepFailed", "StepOutcomeUnknown"]);

/** The failed attempts among what has happened to a step, in their order. A step may fail before its first. */
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
