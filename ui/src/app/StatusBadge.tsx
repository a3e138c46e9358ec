/** A status as an icon and a label in its colour. */

import {
  Ban,
  CircleCheck,
  CircleDashed,
  CircleHelp,
  CirclePause,
  CircleSlash,
  CircleX,
  Hourglass,
  LoaderCircle,
  type LucideIcon,
  Undo2,
} from "lucide-react";

import type { RunStatus, StepStatus } from "../runs/model.ts";
import classes from "./StatusBadge.module.css";

interface Appearance {
  readonly icon: LucideIcon;
  readonly word: string;
  readonly color: string;
}

const APPEARANCES: Record<RunStatus | StepStatus, Appearance> = {
  PENDING: { icon: CircleDashed, word: "Pending", color: "var(--status-pending)" },
  RUNNING: { icon: LoaderCircle, word: "Running", color: "var(--status-running)" },
  WAITING: { icon: Hourglass, word: "Waiting", color: "var(--status-waiting)" },
  PAUSED: { icon: CirclePause, word: "Paused", color: "var(--status-paused)" },
  COMPENSATING: { icon: Undo2, word: "Compensating", color: "var(--status-waiting)" },
  COMPLETED: { icon: CircleCheck, word: "Completed", color: "var(--status-completed)" },
  FAILED: { icon: CircleX, word: "Failed", color: "var(--status-failed)" },
  CANCELLED: { icon: Ban, word: "Cancelled", color: "var(--status-cancelled)" },
  SKIPPED: { icon: CircleSlash, word: "Skipped", color: "var(--status-skipped)" },
  OUTCOME_UNKNOWN: { icon: CircleHelp, word: "Outcome unknown", color: "var(--status-waiting)" },
};

export function appearanceOf(status: RunStatus | StepStatus): Appearance {
  return APPEARANCES[status];
}

export function StatusBadge({ status }: { status: RunStatus | StepStatus }) {
  const { icon: Icon, word, color } = APPEARANCES[status];
  return (
    <span className={classes["badge"]} style={{ color }} data-status={status} data-testid="status">
      <Icon size={15} aria-hidden className={status === "RUNNING" ? classes["turning"] : undefined} />
      {word}
    </span>
  );
}
