/** A step on the map of a large graph: a spot in the colour of its status. */

import type { MiniMapNodeProps } from "@xyflow/react";

import { appearanceOf } from "../app/StatusBadge.tsx";
import { useStatus } from "./live.ts";
import { STEP } from "./plan.ts";

export function MapStep({ id, x, y, width, height }: MiniMapNodeProps) {
  const status = useStatus(id);
  const color = status === null ? "var(--mantine-color-dimmed)" : appearanceOf(status).color;
  // What is inside of a group is seen in it.
  return (
    <rect
      x={x}
      y={y}
      width={width}
      height={height}
      rx={8}
      style={{ fill: color, fillOpacity: height > STEP.height ? 0.25 : 1 }}
    />
  );
}
