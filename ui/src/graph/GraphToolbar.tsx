/** The toolbar above a graph: zoom, minimap and direction. It does not overlap the graph. */

import { ActionIcon, Group, Tooltip } from "@mantine/core";
import { useReactFlow, useStore } from "@xyflow/react";
import { type LucideIcon, Map as MapIcon, Maximize2, ZoomIn, ZoomOut } from "lucide-react";
import type { ReactNode } from "react";

import classes from "./graph.module.css";
import { useMinimapChoice, useFreeCorners } from "./GraphMinimap.tsx";
import type { Layout } from "./layout.ts";
import { EDGE } from "./viewport.ts";

// Fit the whole graph, however small.
const FIT = { padding: `${EDGE}px`, maxZoom: 1 } as const;

export function GraphToolbar({ layout, children }: { layout: Layout | null; children: ReactNode }) {
  const { zoomIn, zoomOut, fitView } = useReactFlow();
  const isFarthest = useStore(({ transform, minZoom }) => transform[2] <= minZoom);
  const isClosest = useStore(({ transform, maxZoom }) => transform[2] >= maxZoom);
  return (
    <Group className={classes["tools"]} justify="space-between" wrap="nowrap" gap="xs">
      <Group gap={4} wrap="nowrap" role="group" aria-label="View">
        <Tool name="Zoom out" icon={ZoomOut} disabled={isFarthest} onClick={() => void zoomOut()} />
        <Tool name="Zoom in" icon={ZoomIn} disabled={isClosest} onClick={() => void zoomIn()} />
        <Tool name="Fit view" icon={Maximize2} onClick={() => void fitView(FIT)} />
        {layout !== null && <MapSwitch layout={layout} />}
      </Group>
      {children}
    </Group>
  );
}

function MapSwitch({ layout }: { layout: Layout }) {
  const [choice, setChoice] = useMinimapChoice();
  const { isUseful, free } = useFreeCorners(layout);
  if (!isUseful) return null;
  const isShown = choice ?? free.length > 0;
  return <Tool name="Minimap" icon={MapIcon} pressed={isShown} onClick={() => setChoice(!isShown)} />;
}

function Tool({
  name,
  icon: Icon,
  disabled = false,
  pressed,
  onClick,
}: {
  name: string;
  icon: LucideIcon;
  disabled?: boolean;
  /** Undefined for tools that are not toggles. */
  pressed?: boolean;
  onClick: () => void;
}) {
  return (
    <Tooltip label={name} openDelay={400}>
      <ActionIcon
        variant={pressed === true ? "filled" : "default"}
        size={26}
        aria-label={name}
        aria-pressed={pressed}
        disabled={disabled}
        data-testid={`graph-tool-${name.toLowerCase().replace(" ", "-")}`}
        onClick={onClick}
      >
        <Icon size={14} aria-hidden />
      </ActionIcon>
    </Tooltip>
  );
}
