/** The runs as a table; on a phone each is a card. */

import { Checkbox } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { type RefObject, useCallback, useRef } from "react";

import { useListedKey, useShortcut } from "../../app/shortcuts.ts";
import classes from "./list.module.css";
import { useReturnToRun } from "./openedRun.ts";
import { RunRow } from "./RunRow.tsx";
import type { Run } from "./useRuns.ts";
import type { Selection } from "./useSelection.ts";
import type { Row } from "./useStableRows.ts";

export function RunTable({
  rows,
  selection,
  area,
}: {
  rows: readonly Row[];
  selection: Selection;
  area: RefObject<HTMLTableElement | null>;
}) {
  // One function for all rows, so that unchanged rows do not rerender.
  const latest = useRef(selection);
  latest.current = selection;
  const toggle = useCallback((run: Run) => latest.current.toggle(run), []);
  useRowKeys(area, rows, toggle);
  useReturnToRun(area);
  const mostAgents = useMediaQuery("(min-width: 75em)", false, { getInitialValueInEffect: false }) ? 3 : 2;
  const ticked = rows.filter(({ run }) => selection.runs.has(run.id)).length;
  const areAll = rows.length > 0 && ticked === rows.length;
  return (
    <table role="table" className={classes["table"]} aria-label="Runs" ref={area} data-testid="runs">
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader" scope="col" className={classes["tick"]}>
            <Checkbox
              size="xs"
              checked={areAll}
              indeterminate={ticked > 0 && !areAll}
              onChange={() => selection.set(areAll ? [] : rows.map(({ run }) => run))}
              aria-label={areAll ? "Clear selection" : "Select all runs shown"}
              data-testid="select-all"
            />
          </th>
          <th role="columnheader" scope="col" className={classes["status"]}>
            Status
          </th>
          <th role="columnheader" scope="col" className={classes["workflow"]}>
            Workflow
          </th>
          <th role="columnheader" scope="col" className={classes["agents"]}>
            Agents
          </th>
          <th role="columnheader" scope="col" className={classes["duration"]}>
            Duration
          </th>
          <th role="columnheader" scope="col" className={classes["started"]}>
            Started
          </th>
          <th role="columnheader" scope="col" className={classes["id"]}>
            Run
          </th>
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map(({ run, gone }) => (
          <RunRow
            key={run.id}
            run={run}
            gone={gone}
            selected={selection.runs.has(run.id)}
            mostAgents={mostAgents}
            onToggle={toggle}
          />
        ))}
      </tbody>
    </table>
  );
}

/** `j` and `k` move between runs. They focus the link, so that Enter opens it. */
function useRowKeys(area: RefObject<HTMLTableElement | null>, rows: readonly Row[], toggle: (run: Run) => void): void {
  const present = () => document.activeElement?.closest<HTMLElement>("[data-run]")?.dataset["run"];
  const move = (by: number) => {
    const links = [...(area.current?.querySelectorAll<HTMLElement>("[data-run-link]") ?? [])];
    const at = rows.findIndex(({ run }) => run.id === present());
    links[at < 0 ? 0 : Math.min(Math.max(at + by, 0), links.length - 1)]?.focus();
  };
  useShortcut("j", "Next run", () => move(1));
  useShortcut("k", "Previous run", () => move(-1));
  useListedKey("Enter", "Open run");
  useShortcut("x", "Select or deselect run", () => {
    const found = rows.find(({ run }) => run.id === present());
    if (found !== undefined) toggle(found.run);
  });
}
