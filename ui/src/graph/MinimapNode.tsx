/** A step on the minimap: a rectangle in the colour of its status. */

import type { MiniMapNodeProps } from "@xyflow/react";

import { appearanceOf } from "../app/StatusBadge.tsx";
import { useStatus } from "./graphState.ts";
import { STEP } from "./plan.ts";

export function MinimapNode({ id, x, y, width, height }: MiniMapNodeProps) {
  const status = useStatus(id);
  const color = status === null ? "var(--mantine-color-dimmed)" : appearanceOf(status).color;
  // A group shows its own steps.
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
