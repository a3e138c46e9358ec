/** A step in the graph: its name, its agent, and how it stands. */

import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";

import { lookOf } from "../app/StatusBadge.tsx";
import type { StepStatus } from "../runs/model.ts";
import classes from "./graph.module.css";

export type StepNodeData = {
  readonly name: string;
  readonly agent: string;
  readonly status: StepStatus | null;
  readonly attempts: number;
  readonly across: boolean;
  readonly note: string | null;
};

export const StepNode = memo(function StepNode({ data, selected }: NodeProps<Node<StepNodeData>>) {
  const look = data.status === null ? null : lookOf(data.status);
  const Icon = look?.icon;
  return (
    <div
      className={classes["step"]}
      data-status={data.status ?? "NONE"}
      data-selected={selected || undefined}
      data-testid={`graph-step-${data.name}`}
      style={{ borderColor: look?.color }}
    >
      <Handle type="target" position={data.across ? Position.Left : Position.Top} className={classes["handle"]!} />
      <div className={classes["name"]}>{data.name}</div>
      <div className={classes["agent"]}>{data.agent}</div>
      {look !== null && Icon !== undefined && (
        <div className={classes["status"]} style={{ color: look.color }}>
          <Icon size={13} aria-hidden />
          {look.word}
          {data.attempts > 1 && <span> · attempt {data.attempts}</span>}
          {data.note !== null && <span> · {data.note}</span>}
        </div>
      )}
      <Handle type="source" position={data.across ? Position.Right : Position.Bottom} className={classes["handle"]!} />
    </div>
  );
});
