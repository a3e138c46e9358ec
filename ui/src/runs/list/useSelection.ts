/** The selected runs. They stay selected while the list changes, until the filters change. */

import { useEffect, useState } from "react";

import type { Run } from "./useRuns.ts";

export interface Selection {
  readonly runs: ReadonlyMap<string, Run>;
  toggle(run: Run): void;
  set(runs: readonly Run[]): void;
}

export function useSelection(shown: readonly Run[], of: string): Selection {
  const [chosen, setChosen] = useState<{ of: string; runs: ReadonlyMap<string, Run> }>({ of, runs: new Map() });
  const present = chosen.of === of ? chosen.runs : new Map<string, Run>();
  useEffect(() => {
    // A selected run that has left the list keeps its last known state.
    if (chosen.of !== of) return;
    const changed = shown.filter((run) => chosen.runs.has(run.id) && chosen.runs.get(run.id) !== run);
    if (changed.length > 0)
      setChosen({ of, runs: new Map([...chosen.runs, ...changed.map((run) => [run.id, run] as const)]) });
  }, [shown, chosen, of]);
  return {
    runs: present,
    toggle: (run) => {
      const next = new Map(present);
      if (!next.delete(run.id)) next.set(run.id, run);
      setChosen({ of, runs: next });
    },
    set: (runs) => setChosen({ of, runs: new Map(runs.map((run) => [run.id, run])) }),
  };
}
