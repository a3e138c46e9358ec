/**
 * Rows that do not move while somebody is about to click on one.
 *
 * While they are held, each row shows the latest that is known of its run, but none comes and none goes: what is new
 * is counted, and what the list has no more is marked.
 */

import { useRef } from "react";

import type { Run } from "./useRuns.ts";

export interface Row {
  readonly run: Run;
  /** The list has it no more: it is not what was asked for any longer. */
  readonly gone: boolean;
}

export interface SteadyRows {
  readonly rows: readonly Row[];
  /** How many runs have come above. */
  readonly fresh: number;
}

/** `of` names the list, null while it is still the one before: another list is never held. */
export function useSteadyRows(runs: readonly Run[], hasMore: boolean, held: boolean, of: string | null): SteadyRows {
  const shown = useRef<{ of: string | null; runs: readonly Run[] }>({ of, runs });
  if (!held || shown.current.of !== of || shown.current.runs.length === 0) {
    shown.current = { of, runs };
    return { rows: runs.map((run) => ({ run, gone: false })), fresh: 0 };
  }
  const latest = new Map(runs.map((run) => [run.id, run]));
  const last = runs.at(-1)?.id ?? "";
  const before = shown.current.runs;
  const newest = before[0]?.id ?? "";
  const oldest = before.at(-1)?.id ?? "";
  const kept = before.map((run) => latest.get(run.id) ?? run);
  // More that was asked for comes below, where it moves nothing.
  shown.current = { of, runs: [...kept, ...runs.filter((run) => run.id < oldest)] };
  return {
    // Where more follow, what is below the last one was pushed out by new runs.
    rows: shown.current.runs.map((run) => ({ run, gone: !latest.has(run.id) && (!hasMore || run.id > last) })),
    fresh: runs.filter((run) => run.id > newest).length,
  };
}
