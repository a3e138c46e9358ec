/** How an agent stands, its breaker, a call's end and a check's grade: an icon and a word each. */

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
import type { BreakerWord, AgentHealth } from "./health.ts";

interface Appearance {
  readonly icon: LucideIcon;
  readonly word: string;
  readonly color: string;
  readonly told: string;
}

const STANDING: Record<AgentHealth, Appearance> = {
  healthy: {
    icon: CircleCheck,
    word: "Healthy",
    color: "var(--status-completed)",
    told: "Every call of the last hour has ended well.",
  },
  unsteady: {
    icon: TriangleAlert,
    word: "Unsteady",
    color: "var(--status-waiting)",
    told: "Some calls of the last hour have failed.",
  },
  failing: {
    icon: CircleX,
    word: "Failing",
    color: "var(--status-failed)",
    told: "At least half of the calls of the last hour have failed, and the last one too.",
  },
  quiet: {
    icon: CircleMinus,
    word: "Quiet",
    color: "var(--status-pending)",
    told: "No call has ended in the last hour.",
  },
  unused: {
    icon: CircleDashed,
    word: "Not called yet",
    color: "var(--status-pending)",
    told: "No step has called it.",
  },
};

const BREAKER: Record<Exclude<BreakerWord, "none">, Appearance> = {
  closed: {
    icon: ShieldCheck,
    word: "Closed",
    color: "var(--status-completed)",
    told: "Its calls go through.",
  },
  half_open: {
    icon: ShieldEllipsis,
    word: "Half open",
    color: "var(--status-waiting)",
    told: "A few calls are let through to see whether it works again.",
  },
  open: {
    icon: ShieldAlert,
    word: "Open",
    color: "var(--status-failed)",
    told: "It has failed too often: its tasks wait until it is tried again.",
  },
};

const OUTCOME: Record<AgentCall["outcome"], Appearance> = {
  success: { icon: CircleCheck, word: "Success", color: "var(--status-completed)", told: "" },
  error: { icon: CircleX, word: "Error", color: "var(--status-failed)", told: "" },
  interrupted: {
    icon: MessageCircleQuestionMark,
    word: "Asked",
    color: "var(--status-waiting)",
    told: "The agent has asked something.",
  },
  cancelled: { icon: Ban, word: "Cancelled", color: "var(--status-cancelled)", told: "" },
  unknown: {
    icon: CircleHelp,
    word: "Unknown",
    color: "var(--status-waiting)",
    told: "Nobody knows what the agent has done.",
  },
};

const VERDICT: Record<CheckFinding["verdict"], Appearance> = {
  failed: { icon: CircleX, word: "Failed", color: "var(--status-failed)", told: "" },
  warning: { icon: TriangleAlert, word: "Warning", color: "var(--status-waiting)", told: "" },
  passed: { icon: CircleCheck, word: "Passed", color: "var(--status-completed)", told: "" },
  skipped: { icon: CircleMinus, word: "Skipped", color: "var(--status-skipped)", told: "" },
};

const GRADE_COLORS: Record<string, string> = {
  A: "var(--status-completed)",
  B: "var(--status-completed)",
  C: "var(--status-waiting)",
  D: "var(--status-failed)",
  F: "var(--status-failed)",
};

function Mark({ appearance, testId, value }: { appearance: Appearance; testId: string; value: string }) {
  const { icon: Icon, word, color, told } = appearance;
  const mark = (
    <span className={classes["mark"]} style={{ color }} data-testid={testId} data-value={value}>
      <Icon size={15} aria-hidden />
      {word}
    </span>
  );
  return told === "" ? (
    mark
  ) : (
    <Tooltip label={told} openDelay={300} multiline maw={280}>
      {mark}
    </Tooltip>
  );
}

export function HealthBadge({ standing }: { standing: AgentHealth }) {
  return <Mark appearance={STANDING[standing]} testId="standing" value={standing} />;
}

export function healthLabel(standing: AgentHealth): string {
  return STANDING[standing].word;
}

export function BreakerBadge({ breaker }: { breaker: BreakerWord }) {
  if (breaker === "none") return null;
  const appearance = BREAKER[breaker];
  return (
    <Mark
      appearance={{ ...appearance, word: `Breaker ${appearance.word.toLowerCase()}` }}
      testId="breaker"
      value={breaker}
    />
  );
}

export function OutcomeBadge({ outcome }: { outcome: AgentCall["outcome"] }) {
  return <Mark appearance={OUTCOME[outcome]} testId="outcome" value={outcome} />;
}

export function VerdictBadge({ verdict }: { verdict: CheckFinding["verdict"] }) {
  return <Mark appearance={VERDICT[verdict]} testId="verdict" value={verdict} />;
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
