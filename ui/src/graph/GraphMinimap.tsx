/**
 * The minimap, available while part of the graph is out of view. It opens automatically in a corner where it covers
 * nothing, otherwise only on request.
 */

import { useLocalStorage } from "@mantine/hooks";
import { MiniMap, type PanelPosition, useStore } from "@xyflow/react";
import { useState } from "react";

import type { Layout } from "./layout.ts";
import { MinimapNode } from "./MinimapNode.tsx";
import { freeCorners, isFullyVisible, mapSize } from "./viewport.ts";

// Smaller graphs need no minimap.
const FROM = { steps: 5, width: 320 };

/** Null: shown where it covers nothing. The choice is remembered for all graphs. */
export function useMinimapChoice() {
  return useLocalStorage<boolean | null>({
    key: "trunkline.graph.map",
    defaultValue: null,
    getInitialValueInEffect: false,
  });
}

/** Whether a minimap is useful for the current view, and the corners in which it would cover nothing. */
export function useFreeCorners(layout: Layout): {
  readonly isUseful: boolean;
  readonly free: readonly PanelPosition[];
} {
  const found = useStore(({ width, height, transform: [x, y, zoom] }) => {
    const [view, pane] = [
      { x, y, zoom },
      { width, height },
    ];
    if (layout.rects.size < FROM.steps || width < FROM.width || isFullyVisible(layout, view, pane)) return null;
    // A string, so that an unchanged value causes no render.
    return freeCorners(layout, view, pane).join();
  });
  return {
    isUseful: found !== null,
    free: found === null || found === "" ? [] : (found.split(",") as PanelPosition[]),
  };
}

export function GraphMinimap({ layout }: { layout: Layout }) {
  const width = useStore((state) => state.width);
  const [choice] = useMinimapChoice();
  const { isUseful, free } = useFreeCorners(layout);
  const [corner, setCorner] = useState<PanelPosition | null>(null);
  // Keep its position while the user drags in it.
  const [isHeld, setHeld] = useState(false);
  const next = isHeld ? corner : cornerOf(isUseful ? choice : false, free, corner);
  if (next !== corner) setCorner(next);
  return (
    <div onPointerEnter={() => setHeld(true)} onPointerLeave={() => setHeld(false)}>
      {next !== null && (
        <MiniMap
          position={next}
          nodeComponent={MinimapNode}
          style={mapSize({ width, height: 0 })}
          pannable
          zoomable
          ariaLabel="Minimap"
        />
      )}
    </div>
  );
}

/** Null: no minimap. It keeps its corner as long as it covers nothing there. */
function cornerOf(
  choice: boolean | null,
  free: readonly PanelPosition[],
  before: PanelPosition | null,
): PanelPosition | null {
  if (choice === false) return null;
  if (before !== null && free.includes(before)) return before;
  return free[0] ?? (choice === null ? null : "bottom-right");
}
