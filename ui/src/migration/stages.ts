/** The stages of a migration, and what is to be done next in each. */

import { CalendarClock, CircleCheck, Flag, GitCompareArrows, Percent, Undo2, type LucideIcon } from "lucide-react";

import type { Action, Blocker, Entry, Stage, Status, Verdict } from "./queries.ts";

interface Look {
  readonly name: string;
  readonly icon: LucideIcon;
  readonly color: string;
  /** Which side answers a run. */
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
    told: "The old side answers every run.",
  },
  shadow: {
    name: "Shadow",
    icon: GitCompareArrows,
    color: "var(--status-running)",
    told: "The old side answers; a share of the inputs goes to the new one beside, and the answers are compared.",
  },
  canary: {
    name: "Canary",
    icon: Percent,
    color: "var(--status-waiting)",
    told: "A share of the runs calls the new side, all others the old one.",
  },
  cut_over: {
    name: "Cut over",
    icon: CircleCheck,
    color: "var(--status-completed)",
    told: "Runs that begin from now on call the new side; the old one is still there to go back to.",
  },
  finished: {
    name: "Finished",
    icon: Flag,
    color: "var(--status-completed)",
    told: "The agent is registered as its new side; the old one is gone.",
  },
  rolled_back: {
    name: "Rolled back",
    icon: Undo2,
    color: "var(--status-failed)",
    told: "Runs that begin from now on call the old side again.",
  },
};

export const SIMPLE = "simple-a2a";

/** The column of an agent; null: it has nothing to migrate. */
export function stageOf(entry: Entry): Stage | null {
  if (entry.migration !== null) return entry.migration.stage;
  return entry.in_use === SIMPLE || entry.in_use === null ? "planned" : null;
}

export function has(entry: Entry, ...codes: Blocker["code"][]): Blocker | undefined {
  return entry.blockers.find(({ code }) => codes.includes(code));
}

/** What shadowed answers have come to. */
export function compared(entry: Entry): { readonly all: number; readonly differing: number } {
  const { agree = 0, differ = 0, new_failed = 0 } = entry.comparisons;
  return { all: agree + differ + new_failed, differing: differ + new_failed };
}

export interface Next {
  readonly text: string;
  /** What leads to it; left out: nothing but waiting, or work elsewhere. */
  readonly action?: Action | "check";
  /** What is to be looked at. */
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
        ? { text: "Cut it over", action: "cutover" }
        : beforeCutover(entry);
    case "cut_over":
      return { text: "Finish when nobody needs the old side", action: "finish" };
    case "rolled_back":
      return has(entry, "not_repeatable") === undefined
        ? { text: "Mend it, then shadow it again", action: "shadow" }
        : { text: "Mend it, then try it on some runs", action: "canary" };
    case "finished":
    case null:
      return null;
  }
}

function fromPlan(entry: Entry): Next {
  if (has(entry, "protocol_unknown") !== undefined) return { text: "Find out what it speaks: see the agent's page" };
  if (has(entry, "check_failed") !== undefined)
    return { text: "Correct the new side, then check it again", action: "check" };
  return has(entry, "not_repeatable") === undefined
    ? { text: "Shadow it: compare both sides on real input", action: "shadow" }
    : { text: "Try the new side on some runs", action: "canary" };
}

function fromShadow(entry: Entry): Next {
  const { all } = compared(entry);
  const missing = (entry.migration?.limits.comparisons ?? 0) - all;
  if (has(entry, "disagreement") !== undefined) return { text: "Look at the differences", verdict: "differ" };
  if (missing > 0) return { text: `Wait for ${missing} more comparison${missing === 1 ? "" : "s"}` };
  return { text: "Try the new side on some runs", action: "canary" };
}

function beforeCutover(entry: Entry): Next {
  if (has(entry, "check_failed") !== undefined)
    return { text: "Correct the new side, then check it again", action: "check" };
  if (has(entry, "check_missing") !== undefined) return { text: "Check the new side", action: "check" };
  return { text: "Attest that it is ready", action: "ready" };
}

/** Why an action cannot be asked for now; null: it can. What force can overrule is no reason. */
export function refusalOf(action: Action, status: Status): string | null {
  const stage = stageOf(status);
  switch (action) {
    case "ready":
      return stage === "cut_over"
        ? "It has been cut over already. Finish the migration, or roll it back to begin anew."
        : null;
    case "shadow":
      if (stage === "cut_over") return "It has been cut over already. Roll it back first.";
      return status.blockers.some(({ code }) => code === "not_repeatable")
        ? "It is not declared safe to call twice. If it is, register it as repeatable; otherwise use a canary."
        : null;
    case "canary":
      return stage === "cut_over" ? "It has been cut over already. Roll it back first." : null;
    case "cutover":
      if (stage === "cut_over") return "It has been cut over already.";
      return cutoverRefusal(status);
    case "rollback":
      if (stage === "finished") return "Its migration is finished: there is no old side to go back to.";
      if (stage === "rolled_back") return "It has been rolled back already.";
      return stage === "shadow" || stage === "canary" || stage === "cut_over"
        ? null
        : "No run calls a new side: there is nothing to go back from.";
    case "finish":
      if (stage !== "cut_over") return "It has not been cut over.";
      return status.old_runs === 0
        ? null
        : `${status.old_runs} unfinished run${status.old_runs === 1 ? " was" : "s were"} accepted before the cutover and may still call the old side.`;
  }
}

function cutoverRefusal(status: Status): string | null {
  const nowhere = has(status, "protocol_unknown", "no_target");
  if (nowhere !== undefined) return nowhere.message;
  return status.migration?.target == null || status.migration.stage === "finished"
    ? "There is no new side to cut over to."
    : null;
}
