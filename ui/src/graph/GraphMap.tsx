/** The map of a large graph, for as long as part of the graph is out of sight: what is all in sight needs none. */

import { MiniMap, useStore } from "@xyflow/react";

import type { Layout } from "./layout.ts";
import { MapStep } from "./MapStep.tsx";

const FROM = { steps: 40, width: 600 };

export function GraphMap({ layout }: { layout: Layout }) {
  const useful = useStore(({ width, height, transform: [x, y, zoom] }) => {
    if (layout.places.size <= FROM.steps || width < FROM.width) return false;
    return x < 0 || y < 0 || x + layout.width * zoom > width || y + layout.height * zoom > height;
  });
  return useful && <MiniMap nodeComponent={MapStep} pannable zoomable ariaLabel="Map of the graph" />;
}
