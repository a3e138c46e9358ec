/** The stages of a migration, and the next step in each. */

import { CalendarClock, CircleCheck, Flag, GitCompareArrows, Percent, Undo2, type LucideIcon } from "lucide-react";

import type { Action, Blocker, Entry, Stage, Status, Verdict } from "./queries.ts";

interface Look {
  readonly name: string;
  readonly icon: LucideIcon;
  readonly color: string;
  /** Whether runs call the source or the target. */
  readonly told: string;
}

export const STAGES = [
  "planned",
  "shadow",
  "canary",
  "cut_over",
  "finished",
  "rolled_back",
] as const satisfies readonly Stage[];

export const LOOKS: Record<Stage, Look> = {
  planned: {
    name: "Planned",
    icon: CalendarClock,
    color: "var(--status-pending)",
    told: "All runs call the source.",
  },
  shadow: {
    name: "Shadow",
    icon: GitCompareArrows,
    color: "var(--status-running)",
    told: "All runs call the source. A share of the calls is also sent to the target, and the outputs are compared.",
  },
  canary: {
    name: "Canary",
    icon: Percent,
    color: "var(--status-waiting)",
    told: "A share of the runs calls the target. All others call the source.",
  },
  cut_over: {
    name: "Cut over",
    icon: CircleCheck,
    color: "var(--status-completed)",
    told: "New runs call the target. You can still roll back to the source.",
  },
  finished: {
    name: "Finished",
    icon: Flag,
    color: "var(--status-completed)",
    told: "The agent is registered with its target. The source is removed.",
  },
  rolled_back: {
    name: "Rolled back",
    icon: Undo2,
    color: "var(--status-failed)",
    told: "New runs call the source again.",
  },
};

export const SIMPLE = "simple-a2a";

/** The board column of an agent, or null if there is nothing to migrate. */
export function stageOf(entry: Entry): Stage | null {
  if (entry.migration !== null) return entry.migration.stage;
  return entry.in_use === SIMPLE || entry.in_use === null ? "planned" : null;
}

export function has(entry: Entry, ...codes: Blocker["code"][]): Blocker | undefined {
  return entry.blockers.find(({ code }) => codes.includes(code));
}

/** The number of comparisons, and of those that differ. */
export function compared(entry: Entry): { readonly all: number; readonly differing: number } {
  const { agree = 0, differ = 0, new_failed = 0 } = entry.comparisons;
  return { all: agree + differ + new_failed, differing: differ + new_failed };
}

export interface Next {
  readonly text: string;
  /** The action to take; undefined if the user has to wait or to work elsewhere. */
  readonly action?: Action | "check";
  /** The comparisons to review. */
  readonly verdict?: Verdict;
}

export function nextOf(entry: Entry): Next | null {
  switch (stageOf(entry)) {
    case "planned":
      return fromPlan(entry);
    case "shadow":
      return fromShadow(entry);
    case "canary":
      return has(entry, "check_missing", "check_failed", "not_attested") === undefined
        ? { text: "Cut over", action: "cutover" }
        : beforeCutover(entry);
    case "cut_over":
      return { text: "Finish when the source is no longer needed", action: "finish" };
    case "rolled_back":
      return has(entry, "not_repeatable") === undefined
        ? { text: "Fix the target, then shadow it again", action: "shadow" }
        : { text: "Fix the target, then start a canary", action: "canary" };
    case "finished":
    case null:
      return null;
  }
}

function fromPlan(entry: Entry): Next {
  if (has(entry, "protocol_unknown") !== undefined) return { text: "Detect the protocol on the agent's page" };
  if (has(entry, "check_failed") !== undefined) return { text: "Fix the target, then check it again", action: "check" };
  return has(entry, "not_repeatable") === undefined
    ? { text: "Start shadowing to compare source and target", action: "shadow" }
    : { text: "Start a canary", action: "canary" };
}

function fromShadow(entry: Entry): Next {
  const { all } = compared(entry);
  const missing = (entry.migration?.limits.comparisons ?? 0) - all;
  if (has(entry, "disagreement") !== undefined) return { text: "Review the differences", verdict: "differ" };
  if (missing > 0) return { text: `Wait for ${missing} more comparison${missing === 1 ? "" : "s"}` };
  return { text: "Start a canary", action: "canary" };
}

function beforeCutover(entry: Entry): Next {
  if (has(entry, "check_failed") !== undefined) return { text: "Fix the target, then check it again", action: "check" };
  if (has(entry, "check_missing") !== undefined) return { text: "Check the target", action: "check" };
  return { text: "Attest that the target is ready", action: "ready" };
}

/** Why an action is not available now, or null if it is. Blockers that can be overridden do not count. */
export function refusalOf(action: Action, status: Status): string | null {
  const stage = stageOf(status);
  switch (action) {
    case "ready":
      return stage === "cut_over"
        ? "The agent is already cut over. Finish the migration, or roll it back to start again."
        : null;
    case "shadow":
      if (stage === "cut_over") return "The agent is already cut over. Roll it back first.";
      return status.blockers.some(({ code }) => code === "not_repeatable")
        ? "The agent is not repeatable. If it can safely receive a task twice, set it to repeatable. Otherwise use a canary."
        : null;
    case "canary":
      return stage === "cut_over" ? "The agent is already cut over. Roll it back first." : null;
    case "cutover":
      if (stage === "cut_over") return "The agent is already cut over.";
      return cutoverRefusal(status);
    case "rollback":
      if (stage === "finished") return "The migration is finished, so there is no source to roll back to.";
      if (stage === "rolled_back") return "The agent is already rolled back.";
      return stage === "shadow" || stage === "canary" || stage === "cut_over"
        ? null
        : "No runs call a target, so there is nothing to roll back.";
    case "finish":
      if (stage !== "cut_over") return "The agent is not cut over.";
      return status.old_runs === 0
        ? null
        : `${status.old_runs} unfinished run${status.old_runs === 1 ? " was" : "s were"} accepted before the cutover and may still call the source.`;
  }
}

function cutoverRefusal(status: Status): string | null {
  const nowhere = has(status, "protocol_unknown", "no_target");
  if (nowhere !== undefined) return nowhere.message;
  return status.migration?.target == null || status.migration.stage === "finished"
    ? "There is no target to cut over to."
    : null;
}
