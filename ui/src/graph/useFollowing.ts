/** Brings what was chosen elsewhere into sight, once for each choice: after that the reader moves the graph. */

import { useReactFlow, useStoreApi } from "@xyflow/react";
import { useCallback, useRef } from "react";

import type { Layout } from "./layout.ts";
import { useActs } from "./live.ts";
import { isSlot } from "./plan.ts";
import { around, isInSight, READABLE } from "./sight.ts";

/** What is chosen: the node, and the name under which it was chosen, since an item may move from node to node. */
export interface Chosen {
  readonly node: string;
  readonly name: string;
}

/** Call it when something is chosen, and after the graph was put in its place. */
export function useFollowing(layout: Layout, chosen: Chosen | null): () => void {
  const { live } = useActs();
  const { setViewport } = useReactFlow();
  const store = useStoreApi();
  const followed = useRef<string | null>(null);
  return useCallback(() => {
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
    if (isInSight(layout, place, { x, y, zoom }, { width, height })) return;
    void setViewport({ ...around(layout, { width, height }, place, Math.max(zoom, READABLE)) });
  }, [layout, chosen, live, setViewport, store]);
}
