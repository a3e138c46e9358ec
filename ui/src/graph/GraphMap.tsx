/**
 * The map of a graph, for as long as part of the graph is out of sight: what is all in sight needs none. It comes by
 * itself where it covers nothing, and elsewhere when the reader asks for it.
 */

import { useLocalStorage } from "@mantine/hooks";
import { MiniMap, type PanelPosition, useStore } from "@xyflow/react";
import { useState } from "react";

import type { Layout } from "./layout.ts";
import { MapStep } from "./MapStep.tsx";
import { freeCorners, isFullyVisible, mapSize } from "./viewport.ts";

// Of fewer one knows where the others are.
const FROM = { steps: 5, width: 320 };

/** Null: where it covers nothing; remembered for all graphs. */
export function useMapChoice() {
  return useLocalStorage<boolean | null>({
    key: "trunkline.graph.map",
    defaultValue: null,
    getInitialValueInEffect: false,
  });
}

/** Whether a map is of use where the graph is now, and the corners in which it would cover nothing. */
export function useMapRoom(layout: Layout): { readonly isUseful: boolean; readonly free: readonly PanelPosition[] } {
  const found = useStore(({ width, height, transform: [x, y, zoom] }) => {
    const [sight, room] = [
      { x, y, zoom },
      { width, height },
    ];
    if (layout.places.size < FROM.steps || width < FROM.width || isFullyVisible(layout, sight, room)) return null;
    // One word for all of them: as long as it is the same nothing is drawn again.
    return freeCorners(layout, sight, room).join();
  });
  return {
    isUseful: found !== null,
    free: found === null || found === "" ? [] : (found.split(",") as PanelPosition[]),
  };
}

export function GraphMap({ layout }: { layout: Layout }) {
  const width = useStore((state) => state.width);
  const [choice] = useMapChoice();
  const { isUseful, free } = useMapRoom(layout);
  const [corner, setCorner] = useState<PanelPosition | null>(null);
  // Under the hand that moves the graph by it, it stays.
  const [isHeld, setHeld] = useState(false);
  const next = isHeld ? corner : cornerOf(isUseful ? choice : false, free, corner);
  if (next !== corner) setCorner(next);
  return (
    <div onPointerEnter={() => setHeld(true)} onPointerLeave={() => setHeld(false)}>
      {next !== null && (
        <MiniMap
          position={next}
          nodeComponent={MapStep}
          style={mapSize({ width, height: 0 })}
          pannable
          zoomable
          ariaLabel="Map of the graph"
        />
      )}
    </div>
  );
}

/** Null: there is no map. It does not move as long as it covers nothing where it is. */
function cornerOf(
  choice: boolean | null,
  free: readonly PanelPosition[],
  before: PanelPosition | null,
): PanelPosition | null {
  if (choice === false) return null;
  if (before !== null && free.includes(before)) return before;
  return free[0] ?? (choice === null ? null : "bottom-right");
}
