/** An edge along the route that elk has found. */

import { BaseEdge, type Edge, type EdgeProps } from "@xyflow/react";
import { memo } from "react";

import type { Point } from "./layout.ts";

export type RouteEdgeData = {
  readonly route: readonly Point[];
  readonly taken: boolean;
};

const RADIUS = 6;

export const RouteEdge = memo(function RouteEdge({ id, data, markerEnd }: EdgeProps<Edge<RouteEdgeData>>) {
  if (data === undefined || data.route.length < 2) return null;
  return (
    <BaseEdge
      id={id}
      path={rounded(data.route)}
      {...(markerEnd === undefined ? {} : { markerEnd })}
      style={{ strokeDasharray: data.taken ? undefined : "4 4", opacity: data.taken ? 1 : 0.55 }}
    />
  );
});

/** Straight lines with the corners rounded off. */
function rounded(points: readonly Point[]): string {
  const [first, ...rest] = points as [Point, ...Point[]];
  let path = `M ${first.x} ${first.y}`;
  for (let place = 0; place < rest.length; place++) {
    const corner = rest[place]!;
    const before = place === 0 ? first : rest[place - 1]!;
    const after = rest[place + 1];
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
