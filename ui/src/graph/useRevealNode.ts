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
      const place = layout?.places.get(node);
      if (layout === null || place === undefined) return;
      const {
        width,
        height,
        transform: [x, y, zoom],
      } = store.getState();
      const room = { width, height };
      if (isVisible(layout, place, { x, y, zoom }, room)) return;
      void setViewport({ ...around(layout, room, place, Math.max(zoom, READABLE)) });
    },
    [layout, setViewport, store],
  );
}
