/** An edge along the route from elk; error edges have a label. */

import { BaseEdge, type Edge, type EdgeProps } from "@xyflow/react";
import { memo } from "react";

import classes from "./graph.module.css";
import type { Point } from "./layout.ts";
import { useIsOnTheWay } from "./graphState.ts";

export type RouteEdgeData = {
  readonly route: readonly Point[];
  readonly onError: boolean;
};

export type RouteEdgeType = Edge<RouteEdgeData>;

const RADIUS = 6;

export const RouteEdge = memo(function RouteEdge({ id, source, target, data, markerEnd }: EdgeProps<RouteEdgeType>) {
  const from = useIsOnTheWay(source);
  const to = useIsOnTheWay(target);
  if (data === undefined || data.route.length < 2) return null;
  const taken = from && to;
  const middle = middleOf(data.route);
  return (
    <BaseEdge
      id={id}
      path={rounded(data.route)}
      interactionWidth={0}
      className={`${classes["edge"]} ${taken ? "" : classes["idle"]} ${data.onError ? classes["onError"] : ""}`}
      {...(markerEnd === undefined ? {} : { markerEnd })}
      {...(data.onError
        ? {
            label: "on error",
            labelX: middle.x,
            labelY: middle.y,
            labelBgPadding: [4, 2] as [number, number],
            labelBgBorderRadius: 3,
          }
        : {})}
    />
  );
});

/** The middle of the longest segment, where a label fits. */
function middleOf(route: readonly Point[]): Point {
  let best = { length: -1, x: 0, y: 0 };
  for (let index = 1; index < route.length; index++) {
    const [before, after] = [route[index - 1]!, route[index]!];
    const length = Math.hypot(after.x - before.x, after.y - before.y);
    if (length > best.length) best = { length, x: (before.x + after.x) / 2, y: (before.y + after.y) / 2 };
  }
  return best;
}

/** Straight lines with rounded corners. */
function rounded(points: readonly Point[]): string {
  const [first, ...rest] = points as [Point, ...Point[]];
  let path = `M ${first.x} ${first.y}`;
  for (let index = 0; index < rest.length; index++) {
    const corner = rest[index]!;
    const before = index === 0 ? first : rest[index - 1]!;
    const after = rest[index + 1];
    if (after === undefined) {
      path += ` L ${corner.x} ${corner.y}`;
      continue;
    }
    const start = towards(corner, before);
    const end = towards(corner, after);
    path += ` L ${start.x} ${start.y} Q ${corner.x} ${corner.y} ${end.x} ${end.y}`;
  }
  return path;
}

function towards(from: Point, to: Point): Point {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const part = Math.min(RADIUS, length / 2) / length;
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}
