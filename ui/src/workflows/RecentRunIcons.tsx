/** The statuses of a workflow's latest runs as icons with links, newest first. */

import { Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";

import { appearanceOf } from "../app/StatusBadge.tsx";
import type { WorkflowItem } from "./queries.ts";
import classes from "./workflows.module.css";

type LastRun = NonNullable<WorkflowItem["last_runs"]>[number];

export function RecentRunIcons({ runs }: { runs: readonly LastRun[] }) {
  if (runs.length === 0) return <span className={classes["none"]}>No runs yet</span>;
  return (
    <span className={classes["marks"]} data-testid="run-marks">
      {runs.map((run) => {
        const { icon: Icon, word, color } = appearanceOf(run.status);
        const description = `${word}, ${new Date(run.created_at).toLocaleString()}`;
        return (
          <Tooltip key={run.id} label={description} openDelay={300}>
            <Link
              to="/runs/$run"
              params={{ run: run.id }}
              aria-label={`Run: ${description}`}
              className={classes["mark"]}
              style={{ color }}
              data-status={run.status}
              data-testid="run-mark"
            >
              <Icon size={16} aria-hidden />
            </Link>
          </Tooltip>
        );
      })}
    </span>
  );
}
