/** A step on the map of a large graph: a spot in the colour of its status. */

import type { MiniMapNodeProps } from "@xyflow/react";

import { lookOf } from "../app/StatusBadge.tsx";
import { useStatus } from "./live.ts";

export function MapStep({ id, x, y, width, height }: MiniMapNodeProps) {
  const status = useStatus(id);
  const color = status === null ? "var(--mantine-color-dimmed)" : lookOf(status).color;
  return <rect x={x} y={y} width={width} height={height} rx={8} style={{ fill: color }} />;
}
