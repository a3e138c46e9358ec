/** Which items of a step are listed, as it stands in the address of a run; left out: all that have begun. */

import type { StepStatus } from "../model.ts";

/** As the counts of a step have it. What is pending has not begun: there is nothing to list. */
export const LISTED = {
  completed: ["COMPLETED"],
  failed: ["FAILED"],
  running: ["RUNNING"],
  waiting: ["WAITING", "OUTCOME_UNKNOWN"],
  skipped: ["SKIPPED"],
  cancelled: ["CANCELLED"],
} as const satisfies Readonly<Record<string, readonly StepStatus[]>>;

export type Listed = keyof typeof LISTED;

export interface ItemsSearch {
  readonly items?: Listed;
}

export function itemsSearch({ items }: Record<string, unknown>): ItemsSearch {
  return typeof items === "string" && Object.hasOwn(LISTED, items) ? { items: items as Listed } : {};
}
