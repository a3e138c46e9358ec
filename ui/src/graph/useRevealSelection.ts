/** Brings what was chosen elsewhere into sight, once for each choice: after that the reader moves the graph. */

import { useCallback, useRef } from "react";

import type { Layout } from "./layout.ts";
import { useActs } from "./live.ts";
import { isSlot } from "./plan.ts";
import { useRevealNode } from "./useRevealNode.ts";

/** What is chosen: the node, and the name under which it was chosen, since an item may move from node to node. */
export interface Chosen {
  readonly node: string;
  readonly name: string;
}

/** Call it when something is chosen, and after the graph was put in its place. */
export function useRevealSelection(layout: Layout, chosen: Chosen | null): () => void {
  const { live } = useActs();
  const bring = useRevealNode(layout);
  const followed = useRef<string | null>(null);
  return useCallback(() => {
    // It may be inside of a step that is still being opened: then this comes again.
    if (chosen !== null && !layout.places.has(chosen.node)) return;
    const choice = chosen === null ? null : `${chosen.name} ${isSlot(chosen.node)}`;
    if (choice === followed.current) return;
    followed.current = choice;
    const isPicked = chosen?.node === live.picked;
    live.picked = null;
    if (chosen !== null && !isPicked) bring(chosen.node);
  }, [layout, chosen, live, bring]);
}
