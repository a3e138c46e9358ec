/**
 * Controls the viewport of the graph: at first the whole graph or its relevant part, then what the user has moved to,
 * expanded or selected. Progress of a run does not move the viewport.
 */

import { useReactFlow, useStore, useStoreApi } from "@xyflow/react";
import { useEffect, useLayoutEffect, useRef } from "react";

import type { Layout, Room } from "./layout.ts";
import { around, held, isVisible, middleOf, READABLE, type GraphView, whole } from "./viewport.ts";
import { type Chosen, useRevealSelection } from "./useRevealSelection.ts";

// Text of 12 pixels is then 4 pixels high.
const FAR = 0.33;
// Below this zoom, a step is too small for touch targets.
const SMALL = 0.4;

/** The last viewport that was set here. If the current one differs, the user has moved it. */
interface Placed {
  readonly layout: Layout;
  readonly room: Room;
  readonly sight: GraphView | null;
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
    void setViewport({ x: next.sight.x, y: next.sight.y, zoom: next.sight.zoom });
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
  room: Room,
  { focus, opened }: { focus: string | null; opened: string | null },
): { placed: Placed; sight: GraphView } | null {
  if (before === null || before.layout.direction !== layout.direction) return begun(layout, room, focus);
  const isMoved =
    before.sight === null || before.sight.x !== now.x || before.sight.y !== now.y || before.sight.zoom !== now.zoom;
  if (before.layout === layout) return isMoved || isStill(before, now, room, focus) ? null : begun(layout, room, focus);
  const isIn = (id: string | null): id is string =>
    id !== null && before.layout.places.has(id) && layout.places.has(id);
  if (isIn(opened)) return kept(before.layout, layout, opened, now, room);
  if (!isMoved && (before.isWhole || whole(layout, room) !== null)) return begun(layout, room, focus);
  const isSeen = isIn(focus) && isVisible(before.layout, before.layout.places.get(focus)!, now, room);
  const anchor = isSeen ? focus : middleOf(before.layout, layout, now, room);
  return anchor === null ? begun(layout, room, focus) : kept(before.layout, layout, anchor, now, room);
}

/** A small change of height, such as a notice above the graph, does not move what is still readable. */
function isStill({ layout, room: before, isWhole }: Placed, now: GraphView, room: Room, focus: string | null): boolean {
  const place = layout.places.get(focus ?? "") ?? layout.places.values().next().value;
  return !isWhole && before.width === room.width && place !== undefined && isVisible(layout, place, now, room);
}

function begun(layout: Layout, room: Room, focus: string | null): { placed: Placed; sight: GraphView } {
  const all = whole(layout, room);
  const [first] = layout.places.values();
  const place = (focus === null ? undefined : layout.places.get(focus)) ?? first ?? { x: 0, y: 0, width: 0, height: 0 };
  const sight = all ?? around(layout, room, place, READABLE);
  return { placed: { layout, room, sight, isWhole: all !== null }, sight };
}

/** Keeps one node at its position, or centres it if it was out of view. */
function kept(
  before: Layout,
  after: Layout,
  node: string,
  now: GraphView,
  room: Room,
): { placed: Placed; sight: GraphView } {
  const [from, to] = [before.places.get(node)!, after.places.get(node)!];
  const sight = isVisible(before, from, now, room)
    ? held(from, to, now)
    : around(after, room, to, Math.max(now.zoom, READABLE));
  return { placed: { layout: after, room, sight: null, isWhole: false }, sight };
}
