/** Scrolls to a node unless it is already readable. */

import { useReactFlow, useStoreApi } from "@xyflow/react";
import { useCallback } from "react";

import type { Layout } from "./layout.ts";
import { around, isVisible, READABLE } from "./viewport.ts";

export function useRevealNode(layout: Layout | null): (node: string) => void {
  const { setViewport } = useReactFlow();
  const store = useStoreApi();
  return useCallback(
    (node) => {
      const rect = layout?.rects.get(node);
      if (layout === null || rect === undefined) return;
      const {
        width,
        height,
        transform: [x, y, zoom],
      } = store.getState();
      const pane = { width, height };
      if (isVisible(layout, rect, { x, y, zoom }, pane)) return;
      void setViewport({ ...around(layout, pane, rect, Math.max(zoom, READABLE)) });
    },
    [layout, setViewport, store],
  );
}
