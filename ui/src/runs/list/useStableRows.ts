/**
 * Keeps the rows in place while the user interacts with them.
 *
 * Meanwhile each row still shows the latest state of its run, but no rows are added or removed: new runs are counted, and
 * runs that have left the list are marked.
 */

import { useRef } from "react";

import type { Run } from "./useRuns.ts";

export interface Row {
  readonly run: Run;
  /** The run no longer matches the filters. */
  readonly gone: boolean;
}

export interface StableRows {
  readonly rows: readonly Row[];
  /** The number of new runs above the list. */
  readonly fresh: number;
}

/** `of` identifies the list; null while the previous one is still shown. A new list replaces the rows at once. */
export function useStableRows(runs: readonly Run[], hasMore: boolean, held: boolean, of: string | null): StableRows {
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
  // Loaded pages are added below, where they move nothing.
  shown.current = { of, runs: [...kept, ...runs.filter((run) => run.id < oldest)] };
  return {
    // If more pages follow, the rows below the last one were pushed out by new runs.
    rows: shown.current.runs.map((run) => ({ run, gone: !latest.has(run.id) && (!hasMore || run.id > last) })),
    fresh: runs.filter((run) => run.id > newest).length,
  };
}
