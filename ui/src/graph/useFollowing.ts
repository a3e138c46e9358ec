/** Brings what was chosen elsewhere into sight, once for each choice: after that the reader moves the graph. */

import { useReactFlow, useStoreApi } from "@xyflow/react";
import { useCallback, useRef } from "react";

import type { Layout, Place } from "./layout.ts";
import { useActs } from "./live.ts";
import { isSlot, STEP } from "./plan.ts";

/** What is chosen: the node, and the name under which it was chosen, since an item may move from node to node. */
export interface Chosen {
  readonly node: string;
  readonly name: string;
}

const NEAR = 0.5;

/** Call it when something is chosen, and after the graph was fitted: then what is too small to be read is shown larger. */
export function useFollowing(layout: Layout, chosen: Chosen | null, tools: number): (least: number) => void {
  const { live } = useActs();
  const { setCenter } = useReactFlow();
  const store = useStoreApi();
  const followed = useRef<string | null>(null);
  return useCallback(
    (least) => {
      const place = chosen === null ? undefined : layout.places.get(chosen.node);
      // It may be inside of a step that is still being opened: then this comes again.
      if (chosen !== null && place === undefined) return;
      const choice = chosen === null ? null : `${chosen.name} ${isSlot(chosen.node)}`;
      if (choice === followed.current) return;
      followed.current = choice;
      const isPicked = chosen?.node === live.picked;
      live.picked = null;
      if (isPicked || place === undefined) return;
      const { width, height, transform: [x, y, zoom] } = store.getState();
      const head = headOf(place);
      const [left, top] = [head.x * zoom + x, head.y * zoom + y];
      const [right, bottom] = [left + head.width * zoom, top + head.height * zoom];
      if (zoom >= least && left >= 0 && top >= tools && right <= width && bottom <= height) return;
      void setCenter(head.x + head.width / 2, head.y + head.height / 2, { zoom: Math.max(zoom, NEAR) });
    },
    [layout, chosen, tools, live, setCenter, store],
  );
}

/** Of a group, which may be larger than the screen: where its name is. */
function headOf({ x, y, width, height }: Place): Place {
  return { x, y, width: Math.min(width, STEP.width), height: Math.min(height, STEP.height) };
}
