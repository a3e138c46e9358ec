/** The map of a graph, for as long as part of the graph is out of sight: what is all in sight needs none. */

import { MiniMap, useStore } from "@xyflow/react";

import type { Layout } from "./layout.ts";
import { MapStep } from "./MapStep.tsx";
import { isAllInSight, mapSize } from "./sight.ts";

// Of fewer one knows where the others are.
const FROM = { steps: 5, width: 320 };

export function GraphMap({ layout }: { layout: Layout }) {
  const width = useStore((state) => state.width);
  const useful = useStore(({ width, height, transform: [x, y, zoom] }) => {
    if (layout.places.size < FROM.steps || width < FROM.width) return false;
    return !isAllInSight(layout, { x, y, zoom }, { width, height });
  });
  if (!useful) return null;
  return <MiniMap nodeComponent={MapStep} style={mapSize({ width, height: 0 })} pannable zoomable ariaLabel="Map of the graph" />;
}
