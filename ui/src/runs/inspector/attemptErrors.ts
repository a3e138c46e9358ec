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

/** The failed attempts of a step, in their order. */
export function failedAttempts(events: readonly RunEvent[], step: string): readonly AttemptEnd[] {
  const ends = new Map<number, AttemptEnd>();
  for (const { type, data } of events) {
    if (data["step"] !== step || !ENDINGS.has(type) || typeof data["attempt"] !== "number") continue;
    ends.set(data["attempt"], {
      attempt: data["attempt"],
      failure: data["error"] as Failure,
      due: typeof data["due"] === "string" ? data["due"] : null,
    });
  }
  return [...ends.values()];
}
