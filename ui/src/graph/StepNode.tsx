/** A step in the graph: its name, its agent or workflow, and its status. */

import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { Link } from "@tanstack/react-router";
import {
  Boxes,
  ChevronsDownUp,
  ChevronsUpDown,
  ExternalLink,
  Layers,
  Moon,
  Radio,
  Repeat,
  Sigma,
  Split,
  UserCheck,
  Workflow,
} from "lucide-react";
import { memo } from "react";

import type { components } from "../api/schema.d.ts";
import { escapeBidi } from "../app/bidi.ts";
import { appearanceOf } from "../app/StatusBadge.tsx";
import type { StepModel, StepStatus } from "../runs/model.ts";
import classes from "./graph.module.css";
import { useGraphActions, useIsSelected, useIsStop, useStatus, useStepState } from "./graphState.ts";
import { countOf, KIND_WORDS, progressOf } from "./stepLabels.ts";

export type GraphStep = components["schemas"]["GraphStep"];

export type StepNodeData = {
  readonly step: GraphStep;
  readonly across: boolean;
  /** Whether the step can be expanded, and whether it is. */
  readonly opens: boolean;
  readonly open: boolean;
  /** The number of items that are shown in the expanded step. */
  readonly shown: number | null;
};

export type StepNodeType = Node<StepNodeData>;

export const StepNode = memo(function StepNode({ id, data }: NodeProps<StepNodeType>) {
  const { step, across, open, shown } = data;
  const state = useStepState(id);
  const status = useStatus(id);
  const appearance = status === null ? null : appearanceOf(status);
  return (
    <div
      className={open ? classes["group"] : classes["step"]}
      data-status={status ?? "NONE"}
      data-selected={useIsSelected(id) || undefined}
      data-testid={`graph-step-${step.name}`}
      title={state?.reason ?? undefined}
      style={{ "--status": appearance?.color ?? "var(--mantine-color-default-border)" } as React.CSSProperties}
    >
      <Handle type="target" position={across ? Position.Left : Position.Top} className={classes["handle"]} />
      <StepFace id={id} step={step} status={status} state={state ?? null} shown={shown} />
      <StepButtons id={id} data={data} state={state ?? null} />
      {state?.counts != null && state.items != null && !open && <ItemsBar state={state} />}
      <Handle type="source" position={across ? Position.Right : Position.Bottom} className={classes["handle"]} />
    </div>
  );
});

/** The button that selects the step. */
function StepFace({
  id,
  step,
  status,
  state,
  shown,
}: {
  id: string;
  step: GraphStep;
  status: StepStatus | null;
  state: StepModel | null;
  shown: number | null;
}) {
  const { select } = useGraphActions();
  const stop = useIsStop(id);
  const selected = useIsSelected(id);
  const appearance = status === null ? null : appearanceOf(status);
  const Icon = appearance?.icon;
  const progress = status === null ? null : progressOf(status, state);
  const count = countOf(state);
  const who = workOf(step);
  return (
    <button
      type="button"
      className={`${classes["face"]} nopan`}
      tabIndex={stop ? 0 : -1}
      aria-pressed={selected}
      data-node={id}
      onClick={() => select(id)}
    >
      <span className={classes["name"]}>{step.name}</span>
      <span className={classes["agent"]}>
        <Kind step={step} />
        <span className={classes["words"]}>{who === null ? null : escapeBidi(who)}</span>
        {count !== null && <span className={classes["count"]}>{count}</span>}
      </span>
      {progress !== null && Icon !== undefined && (
        <span className={classes["status"]}>
          <Icon size={13} aria-hidden />
          <span className={classes["words"]}>{progress}</span>
          {shown !== null && state?.items != null && shown < state.items && (
            <span className={classes["part"]}>
              {shown} of {state.items.toLocaleString("en")} shown. See the Items tab for all.
            </span>
          )}
        </span>
      )}
      {appearance === null && step.when !== null && <span className={classes["condition"]}>if {step.when}</span>}
    </button>
  );
}

function workOf(step: GraphStep): string | null {
  if (step.kind === "workflow") return `${step.workflow}${step.version === null ? "" : ` v${step.version}`}`;
  if (step.skill !== undefined) return `Skill ${step.skill}`;
  return step.kind === "agent" ? (step.agent ?? step.agent_expression ?? null) : KIND_WORDS[step.kind];
}

function Kind({ step }: { step: GraphStep }) {
  return (
    <>
      {step.repeat !== undefined && <Repeat size={12} role="img" aria-label={`Repeated until ${step.repeat.until}`} />}
      {step.for_each !== null && <Layers size={12} role="img" aria-label="For each item" />}
      {step.kind === "workflow" && <Workflow size={12} role="img" aria-label="Workflow" />}
      {step.kind === "steps" && <Boxes size={12} aria-hidden />}
      {step.kind === "set" && <Sigma size={12} aria-hidden />}
      {step.kind === "sleep" && <Moon size={12} aria-hidden />}
      {step.kind === "wait_for" && <Radio size={12} aria-hidden />}
      {step.kind === "ask" && <UserCheck size={12} aria-hidden />}
      {step.join !== null && (
        <Split size={12} role="img" aria-label={`Join: ${step.join.quorum} of ${step.join.of.length}`} />
      )}
    </>
  );
}

/** The buttons that expand the step, and open its child run. */
function StepButtons({ id, data, state }: { id: string; data: StepNodeData; state: StepModel | null }) {
  const { open } = useGraphActions();
  const stop = useIsStop(id);
  const { step } = data;
  // Without a run, a block shows the steps that it consists of.
  const inside = state === null ? step.block !== undefined : state.child !== null || (state.items ?? 0) > 0;
  return (
    <span className={`${classes["doors"]} nopan`}>
      {data.opens && inside && (
        <button
          type="button"
          className={classes["door"]}
          tabIndex={stop ? 0 : -1}
          aria-expanded={data.open}
          aria-label={`${data.open ? "Collapse" : "Expand"} ${step.name}`}
          title={data.open ? "Collapse" : "Expand"}
          data-testid={`graph-open-${step.name}`}
          onClick={() => open(id)}
        >
          {data.open ? <ChevronsDownUp size={14} aria-hidden /> : <ChevronsUpDown size={14} aria-hidden />}
        </button>
      )}
      {state?.child != null && (
        <Link
          to="/runs/$run"
          params={{ run: state.child.run } as never}
          className={classes["door"]}
          tabIndex={stop ? 0 : -1}
          aria-label={`Child run of ${step.kind === "steps" ? `block ${step.name}` : state.child.workflow}`}
          title={`Open the child run of ${step.kind === "steps" ? `block ${step.name}` : state.child.workflow}`}
          data-testid={`graph-child-${step.name}`}
        >
          <ExternalLink size={13} aria-hidden />
        </Link>
      )}
    </span>
  );
}

function ItemsBar({ state }: { state: StepModel }) {
  const total = Math.max(1, state.items ?? 1);
  const counts = state.counts!;
  const parts = [
    ["COMPLETED", counts.COMPLETED],
    ["FAILED", counts.FAILED],
    ["RUNNING", counts.RUNNING],
    ["WAITING", counts.WAITING + counts.OUTCOME_UNKNOWN],
    ["SKIPPED", counts.SKIPPED + counts.CANCELLED],
  ] as const;
  return (
    <span className={classes["items"]} aria-hidden>
      {parts.map(([status, count]) => (
        <span key={status} style={{ width: `${(count / total) * 100}%`, background: appearanceOf(status).color }} />
      ))}
    </span>
  );
}
