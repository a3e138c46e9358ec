/**
 * What of the graph is in sight: when it is new, all of it or what matters; after that what the reader has moved to,
 * opened or chosen. A run that goes on moves nothing.
 */

import { useReactFlow, useStore, useStoreApi } from "@xyflow/react";
import { useEffect, useLayoutEffect, useRef } from "react";

import type { Layout, Room } from "./layout.ts";
import { around, held, isVisible, middleOf, READABLE, type GraphView, whole } from "./viewport.ts";
import { type Chosen, useRevealSelection } from "./useRevealSelection.ts";

// Words of 12 pixels are 4 then.
const FAR = 0.33;
// Below it a step has no room for what a finger needs.
const SMALL = 0.4;

/** What was put in sight last; moved from there since, it is the reader's. */
interface Placed {
  readonly layout: Layout;
  readonly room: Room;
  readonly sight: GraphView | null;
  readonly isWhole: boolean;
}

export interface ViewportControlProps {
  readonly layout: Layout;
  readonly chosen: Chosen | null;
  /** Where to begin if nothing is chosen and not all can be shown. */
  readonly begin: string | null;
  /** What was opened or closed last: it stays where it is. */
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

/** Null: it stays. */
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

/** A line of text above the graph takes some of its height: that alone moves nothing that can still be read. */
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

/** With one node where it was, unless it was out of sight: then with it in the middle. */
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
