/**
 * Controls the viewport of the graph: at first the whole graph or its relevant part, then what the user has moved to,
 * expanded or selected. Progress of a run does not move the viewport.
 */

import { useReactFlow, useStore, useStoreApi } from "@xyflow/react";
import { useEffect, useLayoutEffect, useRef } from "react";

import type { Layout, Size } from "./layout.ts";
import { around, held, isVisible, middleOf, READABLE, type GraphView, whole } from "./viewport.ts";
import { type Chosen, useRevealSelection } from "./useRevealSelection.ts";

// Text of 12 pixels is then 4 pixels high.
const FAR = 0.33;
// Below this zoom, a step is too small for touch targets.
const SMALL = 0.4;

/** The last viewport that was set here. If the current one differs, the user has moved it. */
interface Placed {
  readonly layout: Layout;
  readonly pane: Size;
  readonly view: GraphView | null;
  readonly isWhole: boolean;
}

export interface ViewportControlProps {
  readonly layout: Layout;
  readonly chosen: Chosen | null;
  /** The node to show first if nothing is selected and the graph does not fit. */
  readonly begin: string | null;
  /** The node that was expanded or collapsed last keeps its position on the screen. */
  readonly opened: string | null;
}

export function ViewportControl({ layout, chosen, begin, opened }: ViewportControlProps) {
  const { setViewport } = useReactFlow();
  const store = useStoreApi();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  useZoomOfFrame();
  const placed = useRef<Placed | null>(null);
  const focus = chosen?.node ?? begin;
  const latest = useRef({ focus, opened });
  useLayoutEffect(() => {
    latest.current = { focus, opened };
  });
  useEffect(() => {
    if (width === 0 || height === 0) return;
    const [x, y, zoom] = store.getState().transform;
    const next = nextOf(placed.current, layout, { x, y, zoom }, { width, height }, latest.current);
    if (next === null) return;
    placed.current = next.placed;
    void setViewport({ x: next.view.x, y: next.view.y, zoom: next.view.zoom });
  }, [layout, width, height, setViewport, store]);
  const follow = useRevealSelection(layout, chosen);
  useEffect(() => {
    if (width > 0 && height > 0) follow();
  }, [follow, width, height]);
  return null;
}

function useZoomOfFrame(): void {
  const zoom = useStore((state) => state.transform[2]);
  const frame = useStore((state) => state.domNode);
  useLayoutEffect(() => {
    frame?.style.setProperty("--zoom", String(zoom));
    frame?.toggleAttribute("data-far", zoom < FAR);
    frame?.toggleAttribute("data-small", zoom < SMALL);
  }, [frame, zoom]);
}

/** Null: the viewport does not change. */
function nextOf(
  before: Placed | null,
  layout: Layout,
  now: GraphView,
  pane: Size,
  { focus, opened }: { focus: string | null; opened: string | null },
): { placed: Placed; view: GraphView } | null {
  if (before === null || before.layout.direction !== layout.direction) return begun(layout, pane, focus);
  const isMoved =
    before.view === null || before.view.x !== now.x || before.view.y !== now.y || before.view.zoom !== now.zoom;
  if (before.layout === layout) return isMoved || isStill(before, now, pane, focus) ? null : begun(layout, pane, focus);
  const isIn = (id: string | null): id is string => id !== null && before.layout.rects.has(id) && layout.rects.has(id);
  if (isIn(opened)) return kept(before.layout, layout, opened, now, pane);
  if (!isMoved && (before.isWhole || whole(layout, pane) !== null)) return begun(layout, pane, focus);
  const isSeen = isIn(focus) && isVisible(before.layout, before.layout.rects.get(focus)!, now, pane);
  const anchor = isSeen ? focus : middleOf(before.layout, layout, now, pane);
  return anchor === null ? begun(layout, pane, focus) : kept(before.layout, layout, anchor, now, pane);
}

/** A small change of height, such as a notice above the graph, does not move what is still readable. */
function isStill({ layout, pane: before, isWhole }: Placed, now: GraphView, pane: Size, focus: string | null): boolean {
  const rect = layout.rects.get(focus ?? "") ?? layout.rects.values().next().value;
  return !isWhole && before.width === pane.width && rect !== undefined && isVisible(layout, rect, now, pane);
}

function begun(layout: Layout, pane: Size, focus: string | null): { placed: Placed; view: GraphView } {
  const all = whole(layout, pane);
  const [first] = layout.rects.values();
  const rect = (focus === null ? undefined : layout.rects.get(focus)) ?? first ?? { x: 0, y: 0, width: 0, height: 0 };
  const view = all ?? around(layout, pane, rect, READABLE);
  return { placed: { layout, pane, view, isWhole: all !== null }, view };
}

/** Keeps one node at its position, or centres it if it was out of view. */
function kept(
  before: Layout,
  after: Layout,
  node: string,
  now: GraphView,
  pane: Size,
): { placed: Placed; view: GraphView } {
  const [from, to] = [before.rects.get(node)!, after.rects.get(node)!];
  const view = isVisible(before, from, now, pane)
    ? held(from, to, now)
    : around(after, pane, to, Math.max(now.zoom, READABLE));
  return { placed: { layout: after, pane, view: null, isWhole: false }, view };
}
