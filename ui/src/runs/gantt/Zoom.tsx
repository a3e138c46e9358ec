/** The zoom buttons of the timeline. */

import { ActionIcon, Group, Tooltip } from "@mantine/core";
import { Maximize2, ZoomIn, ZoomOut } from "lucide-react";
import { memo } from "react";

const MOST_ZOOM = 256;

export const Zoom = memo(function Zoom({ zoom, onZoom }: { zoom: number; onZoom: (zoom: number) => void }) {
  const tools = [
    { name: "Zoom out", icon: ZoomOut, next: Math.max(1, zoom / 2), id: "out" },
    { name: "Zoom in", icon: ZoomIn, next: Math.min(MOST_ZOOM, zoom * 2), id: "in" },
    { name: "Reset zoom", icon: Maximize2, next: 1, id: "fit" },
  ];
  return (
    <Group gap={4} wrap="nowrap">
      {tools.map(({ name, icon: Icon, next, id }) => (
        <Tooltip key={id} label={name} openDelay={400}>
          <ActionIcon
            variant="default"
            size={26}
            aria-label={name}
            disabled={next === zoom}
            onClick={() => onZoom(next)}
            data-testid={`gantt-${id}`}
          >
            <Icon size={13} aria-hidden />
          </ActionIcon>
        </Tooltip>
      ))}
    </Group>
  );
});
