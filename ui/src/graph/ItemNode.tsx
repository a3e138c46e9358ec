/** One item of a `for_each` step in the graph: its number and status. */

import type { Node, NodeProps } from "@xyflow/react";
import { memo } from "react";

import { appearanceOf } from "../app/StatusBadge.tsx";
import { indexOf } from "../runs/model.ts";
import classes from "./graph.module.css";
import { useGraphActions, useIsSelected, useIsStop, useStatus, useStepState } from "./graphState.ts";

export type ItemNodeType = Node<Record<string, never>>;

export const ItemNode = memo(function ItemNode({ id }: NodeProps<ItemNodeType>) {
  const { select } = useGraphActions();
  const state = useStepState(id);
  const status = useStatus(id);
  const stop = useIsStop(id);
  const selected = useIsSelected(id);
  if (state === null || state === undefined) return null;
  const { icon: Icon, word, color } = appearanceOf(status ?? state.status);
  return (
    <button
      type="button"
      className={`${classes["item"]} nopan`}
      style={{ "--status": color } as React.CSSProperties}
      tabIndex={stop ? 0 : -1}
      aria-pressed={selected}
      data-selected={selected || undefined}
      data-status={status}
      data-node={id}
      data-testid={`graph-item-${state.name}`}
      onClick={() => select(id)}
    >
      <Icon size={12} aria-hidden />
      <span className={classes["number"]}>{indexOf(state.name)}</span>
      <span className={classes["word"]}>{status === "OUTCOME_UNKNOWN" ? "Unknown" : word}</span>
    </button>
  );
});
