/** Badges for an agent's health, its circuit breaker, a call's outcome and a check's grade: an icon and a label each. */

import { Tooltip } from "@mantine/core";
import {
  Ban,
  CircleCheck,
  CircleDashed,
  CircleHelp,
  CircleMinus,
  CircleX,
  MessageCircleQuestionMark,
  ShieldAlert,
  ShieldCheck,
  ShieldEllipsis,
  TriangleAlert,
  type LucideIcon,
} from "lucide-react";

import classes from "./agents.module.css";
import type { AgentCall, CheckFinding } from "./queries.ts";
import type { BreakerState, AgentHealth } from "./health.ts";

interface Appearance {
  readonly icon: LucideIcon;
  readonly word: string;
  readonly color: string;
  readonly description: string;
}

const HEALTH: Record<AgentHealth, Appearance> = {
  healthy: {
    icon: CircleCheck,
    word: "Healthy",
    color: "var(--status-completed)",
    description: "All calls in the last hour succeeded.",
  },
  unsteady: {
    icon: TriangleAlert,
    word: "Degraded",
    color: "var(--status-waiting)",
    description: "Some calls in the last hour failed.",
  },
  failing: {
    icon: CircleX,
    word: "Failing",
    color: "var(--status-failed)",
    description: "At least half of the calls in the last hour failed, including the latest.",
  },
  quiet: {
    icon: CircleMinus,
    word: "Idle",
    color: "var(--status-pending)",
    description: "No calls ended in the last hour.",
  },
  unused: {
    icon: CircleDashed,
    word: "Never called",
    color: "var(--status-pending)",
    description: "No step has called this agent yet.",
  },
};

const BREAKER: Record<Exclude<BreakerState, "none">, Appearance> = {
  closed: {
    icon: ShieldCheck,
    word: "Closed",
    color: "var(--status-completed)",
    description: "Calls are sent normally.",
  },
  half_open: {
    icon: ShieldEllipsis,
    word: "Half open",
    color: "var(--status-waiting)",
    description: "A few calls are sent to test whether the agent has recovered.",
  },
  open: {
    icon: ShieldAlert,
    word: "Open",
    color: "var(--status-failed)",
    description: "The agent failed too often. Its tasks wait until the next probe.",
  },
};

const OUTCOME: Record<AgentCall["outcome"], Appearance> = {
  success: { icon: CircleCheck, word: "Success", color: "var(--status-completed)", description: "" },
  error: { icon: CircleX, word: "Error", color: "var(--status-failed)", description: "" },
  interrupted: {
    icon: MessageCircleQuestionMark,
    word: "Question",
    color: "var(--status-waiting)",
    description: "The agent asked a question.",
  },
  cancelled: { icon: Ban, word: "Cancelled", color: "var(--status-cancelled)", description: "" },
  unknown: {
    icon: CircleHelp,
    word: "Unknown",
    color: "var(--status-waiting)",
    description: "The call may or may not have reached the agent.",
  },
};

const VERDICT: Record<CheckFinding["verdict"], Appearance> = {
  failed: { icon: CircleX, word: "Failed", color: "var(--status-failed)", description: "" },
  warning: { icon: TriangleAlert, word: "Warning", color: "var(--status-waiting)", description: "" },
  passed: { icon: CircleCheck, word: "Passed", color: "var(--status-completed)", description: "" },
  skipped: { icon: CircleMinus, word: "Skipped", color: "var(--status-skipped)", description: "" },
};

const GRADE_COLORS: Record<string, string> = {
  A: "var(--status-completed)",
  B: "var(--status-completed)",
  C: "var(--status-waiting)",
  D: "var(--status-failed)",
  F: "var(--status-failed)",
};

function IconBadge({ appearance, testId, value }: { appearance: Appearance; testId: string; value: string }) {
  const { icon: Icon, word, color, description } = appearance;
  const mark = (
    <span className={classes["mark"]} style={{ color }} data-testid={testId} data-value={value}>
      <Icon size={15} aria-hidden />
      {word}
    </span>
  );
  return description === "" ? (
    mark
  ) : (
    <Tooltip label={description} openDelay={300} multiline maw={280}>
      {mark}
    </Tooltip>
  );
}

export function HealthBadge({ standing }: { standing: AgentHealth }) {
  return <IconBadge appearance={HEALTH[standing]} testId="standing" value={standing} />;
}

export function healthLabel(standing: AgentHealth): string {
  return HEALTH[standing].word;
}

export function BreakerBadge({ breaker }: { breaker: BreakerState }) {
  if (breaker === "none") return null;
  const appearance = BREAKER[breaker];
  return (
    <IconBadge
      appearance={{ ...appearance, word: `Breaker ${appearance.word.toLowerCase()}` }}
      testId="breaker"
      value={breaker}
    />
  );
}

export function OutcomeBadge({ outcome }: { outcome: AgentCall["outcome"] }) {
  return <IconBadge appearance={OUTCOME[outcome]} testId="outcome" value={outcome} />;
}

export function VerdictBadge({ verdict }: { verdict: CheckFinding["verdict"] }) {
  return <IconBadge appearance={VERDICT[verdict]} testId="verdict" value={verdict} />;
}

export function GradeBadge({ grade, passed }: { grade: string; passed: boolean }) {
  return (
    <span
      className={classes["grade"]}
      style={{ color: GRADE_COLORS[grade] ?? "inherit" }}
      data-testid="grade"
      data-value={grade}
    >
      <b>{grade}</b> {passed ? "passed" : grade === "?" ? "not enough evidence" : "failed"}
    </span>
  );
}
