/** Shows the whole graph when it is new and when its room changes, until the reader has moved it; then what is chosen. */

import { type FitViewOptions, useOnViewportChange, useReactFlow, useStore } from "@xyflow/react";
import { useEffect, useLayoutEffect, useRef } from "react";

import type { Layout } from "./layout.ts";
import { type Chosen, useFollowing } from "./useFollowing.ts";

/** How high the row of tools above the graph is: nothing is put under it. */
export const TOOLS = 48;
export const FIT: FitViewOptions = { padding: { top: `${TOOLS}px`, x: "20px", bottom: "20px" }, maxZoom: 1 };
// Words of 12 pixels are 4 then.
const FAR = 0.33;
// Below it a step has no room for what a finger needs.
const SMALL = 0.4;

export function Fitting({ layout, chosen }: { layout: Layout; chosen: Chosen | null }) {
  const { fitView } = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const zoom = useStore((state) => state.transform[2]);
  const frame = useStore((state) => state.domNode);
  useLayoutEffect(() => {
    frame?.style.setProperty("--zoom", String(zoom));
    frame?.toggleAttribute("data-far", zoom < FAR);
    frame?.toggleAttribute("data-small", zoom < SMALL);
  }, [frame, zoom]);
  const fitted = useRef<Layout | null>(null);
  const moved = useRef(false);
  const fitting = useRef(false);
  useOnViewportChange({
    onStart: () => {
      if (!fitting.current) moved.current = true;
    },
  });
  const follow = useFollowing(layout, chosen, TOOLS);
  const latest = useRef(follow);
  useLayoutEffect(() => {
    latest.current = follow;
  });
  useEffect(() => {
    if (width === 0 || height === 0) return;
    if (fitted.current === layout && moved.current) return;
    fitted.current = layout;
    moved.current = false;
    fitting.current = true;
    void fitView(FIT).finally(() => {
      fitting.current = false;
      latest.current(FAR);
    });
  }, [layout, width, height, fitView]);
  useEffect(() => {
    if (!fitting.current && width > 0 && height > 0) follow(0);
  }, [follow, width, height]);
  return null;
}
