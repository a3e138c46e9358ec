/** One run in the list. */

import { Checkbox, Text } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { CornerDownRight } from "lucide-react";
import { memo, type MouseEvent } from "react";

import { AnchorLink } from "../../app/links.tsx";
import { Duration, Timestamp } from "../../app/Timestamp.tsx";
import { escapeBidi } from "../../app/bidi.ts";
import { StatusBadge } from "../../app/StatusBadge.tsx";
import { LabelChips } from "../LabelChips.tsx";
import { isFinal } from "../model.ts";
import { AgentChips } from "./AgentChips.tsx";
import classes from "./list.module.css";
import { useOpenedRun } from "./openedRun.ts";
import type { Run } from "./useRuns.ts";

// Ids start with the time, so their ends differ most.
const TAIL = 12;

export const RunRow = memo(function RunRow({
  run,
  gone,
  selected,
  mostAgents,
  onToggle,
}: {
  run: Run;
  gone: boolean;
  selected: boolean;
  mostAgents: number;
  onToggle: (run: Run) => void;
}) {
  const navigate = useNavigate();
  const noteOpened = useOpenedRun();
  const open = (event: MouseEvent) => {
    // Ignore clicks on controls and text selections.
    if ((event.target as Element).closest("a, button, input, label") !== null || getSelection()?.isCollapsed === false)
      return;
    noteOpened(run.id);
    void navigate({ to: "/runs/$run", params: { run: run.id }, search: {} });
  };
  return (
    <tr
      role="row"
      className={classes["row"]}
      onClick={open}
      data-testid="run"
      data-run={run.id}
      data-selected={selected || undefined}
      data-gone={gone || undefined}
    >
      <td role="cell" className={classes["tick"]}>
        <Checkbox
          size="xs"
          checked={selected}
          onChange={() => onToggle(run)}
          aria-label={`Select run ${run.id}`}
          data-testid="select-run"
        />
      </td>
      <td role="cell" className={classes["status"]}>
        <StatusBadge status={run.status} />
        {!isFinal(run.status) && run.cancel_requested_at != null && (
          <Text size="xs" c="dimmed">
            being cancelled
          </Text>
        )}
        {gone && (
          <Text size="xs" c="dimmed">
            no longer matches
          </Text>
        )}
      </td>
      <td role="cell" className={classes["workflow"]}>
        <div className={classes["line"]} title={`${run.workflow.name}, version ${run.workflow.version}`}>
          <span className={classes["name"]}>{escapeBidi(run.workflow.name)}</span>
          <Text span size="xs" c="dimmed">
            v{run.workflow.version}
          </Text>
        </div>
        <Detail run={run} />
        <LabelChips labels={run.labels} />
      </td>
      <td role="cell" className={classes["agents"]}>
        <AgentChips agents={run.agents} most={mostAgents} />
      </td>
      <td role="cell" className={classes["duration"]}>
        <Duration from={run.started_at} to={run.finished_at} />
      </td>
      <td role="cell" className={classes["started"]}>
        <Timestamp at={run.started_at ?? run.created_at} />
        {run.started_by !== null && (
          <div className={classes["detail"]} title={`Started by ${run.started_by}`} data-testid="run-started-by">
            by {escapeBidi(run.started_by)}
          </div>
        )}
      </td>
      <td role="cell" className={classes["id"]}>
        <AnchorLink
          to="/runs/$run"
          params={{ run: run.id }}
          search={{}}
          className={classes["link"]}
          aria-label={run.id}
          title={run.id}
          onClick={() => noteOpened(run.id)}
          data-run-link
          data-keeps-focus
        >
          <span className={classes["head"]}>{run.id.slice(0, -TAIL)}</span>
          <span>{run.id.slice(-TAIL)}</span>
        </AnchorLink>
      </td>
    </tr>
  );
});

/** The details next to the name: why the run failed, or where it comes from. */
function Detail({ run }: { run: Run }) {
  if (run.status === "FAILED" && run.error !== null) {
    const text = run.error.step == null ? run.error.message : `${run.error.step}: ${run.error.message}`;
    return (
      <div className={classes["detail"]} title={text} data-testid="run-error">
        {text}
      </div>
    );
  }
  if (run.parent != null) {
    return (
      <div
        className={classes["detail"]}
        title={`Child run of step ${run.parent.step} in run ${run.parent.run_id}`}
        data-testid="run-parent"
      >
        <CornerDownRight size={12} aria-hidden /> child of {run.parent.step} in {run.parent.run_id.slice(-8)}
      </div>
    );
  }
  if (run.retry_of != null) {
    return (
      <div className={classes["detail"]} title={`Retry of run ${run.retry_of}`}>
        retry of {run.retry_of.slice(-8)}
      </div>
    );
  }
  return null;
}
