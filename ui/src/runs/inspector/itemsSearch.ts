/** The status filter of the item list in the URL; all started items by default. */

import type { StepStatus } from "../model.ts";

/** The statuses by count. Pending items have not started, so they are not listed. */
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
