/** The items that the graph shows if there are too many: those that need attention, then the first ones. */

import { indexOf, ownerOf, type RunModel } from "./model.ts";

const MOST = 50;
const URGENT = new Set(["FAILED", "OUTCOME_UNKNOWN", "WAITING"]);

export const visibleItems = {
  most(total: number): number {
    return Math.min(total, MOST);
  },

  names(model: RunModel, step: string, selected: string | null): readonly string[] {
    const total = model.steps.get(step)?.items ?? 0;
    const numbers = new Set<number>();
    if (total > MOST) {
      if (selected !== null && ownerOf(selected) === step) {
        const index = indexOf(selected);
        if (index !== null && index < total) numbers.add(index);
      }
      for (const item of model.items.values()) {
        if (numbers.size === MOST) break;
        if (URGENT.has(item.status) && ownerOf(item.name) === step) numbers.add(indexOf(item.name)!);
      }
    }
    for (let index = 0; numbers.size < Math.min(total, MOST); index++) numbers.add(index);
    return [...numbers].sort((one, other) => one - other).map((index) => `${step}[${index}]`);
  },
};
