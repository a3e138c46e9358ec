/** Scrolls to a node that was selected outside of the graph, once per selection. */

import { useCallback, useRef } from "react";

import type { Layout } from "./layout.ts";
import { useGraphActions } from "./graphState.ts";
import { isSlot } from "./plan.ts";
import { useRevealNode } from "./useRevealNode.ts";

/** The selected node and its name, because an item can move from node to node. */
export interface Chosen {
  readonly node: string;
  readonly name: string;
}

/** Call it after a selection, and after the viewport was initialised. */
export function useRevealSelection(layout: Layout, chosen: Chosen | null): () => void {
  const { live } = useGraphActions();
  const bring = useRevealNode(layout);
  const followed = useRef<string | null>(null);
  return useCallback(() => {
    // The node may be in a step that is still expanding; then this is called again.
    if (chosen !== null && !layout.rects.has(chosen.node)) return;
    const choice = chosen === null ? null : `${chosen.name} ${isSlot(chosen.node)}`;
    if (choice === followed.current) return;
    followed.current = choice;
    const isPicked = chosen?.node === live.picked;
    live.picked = null;
    if (chosen !== null && !isPicked) bring(chosen.node);
  }, [layout, chosen, live, bring]);
}
