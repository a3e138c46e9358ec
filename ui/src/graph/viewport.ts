/**
 * Computes the viewport of a graph: the whole graph if its text is readable then, otherwise the relevant part.
 *
 * Pure. Positions are those of the layout; the result is the offset and the zoom of the graph on the screen.
 */

import type { Layout, Place, Room } from "./layout.ts";
import { STEP } from "./plan.ts";

export interface GraphView {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

// Text of 12 pixels is then 9 pixels high, the minimum for automatic viewports.
export const READABLE = 0.75;
export const EDGE = 20;
// The distance of React Flow's minimap from the corner.
const MAP_EDGE = 15;
// The minimap uses the first corner in which it covers nothing.
const CORNERS = ["bottom-right", "bottom-left", "top-right", "top-left"] as const;

/** The viewport for the whole graph, or null if it would be too small to read. */
export function whole(layout: Layout, room: Room): GraphView | null {
  const zoom = Math.min(1, (room.width - 2 * EDGE) / layout.width, (room.height - 2 * EDGE) / layout.height);
  return zoom < READABLE ? null : around(layout, room, { x: 0, y: 0, width: 0, height: 0 }, zoom);
}

/** Centres the position without empty space at the edges, except next to the minimap. */
export function around(layout: Layout, room: Room, place: Place, zoom: number): GraphView {
  const map = mapSize(room);
  const head = headOf(place);
  // In a wide frame the centre is never under the minimap; in a narrow one, or at the lower end, it can be.
  const isBeside =
    layout.width * zoom > room.width - 2 * EDGE + 1 &&
    (room.width + head.width * zoom) / 2 < room.width - MAP_EDGE - map.width;
  return {
    x: along(layout.width, head.x + head.width / 2, zoom, EDGE, room.width - EDGE, map.width),
    y: along(layout.height, head.y + head.height / 2, zoom, EDGE, room.height - EDGE, isBeside ? 0 : map.height),
    zoom,
  };
}

function along(size: number, middle: number, zoom: number, from: number, to: number, spare: number): number {
  // Tolerance for rounding.
  if (size * zoom <= to - from + 1) return (from + to - size * zoom) / 2;
  const wanted = (from + to) / 2 - middle * zoom;
  return Math.min(from, Math.max(to - spare - size * zoom, wanted));
}

/** Keeps the position at the same place on the screen. */
export function held(before: Place, after: Place, { x, y, zoom }: GraphView): GraphView {
  return { x: x + (before.x - after.x) * zoom, y: y + (before.y - after.y) * zoom, zoom };
}

/** Whether it is completely inside the frame. */
export function isFullyVisible(layout: Layout, { x, y, zoom }: GraphView, room: Room): boolean {
  return x >= 0 && y >= 0 && x + layout.width * zoom <= room.width && y + layout.height * zoom <= room.height;
}

/** Whether it is readable and not covered by the minimap. */
export function isVisible(layout: Layout, place: Place, sight: GraphView, room: Room): boolean {
  const head = headOf(place);
  const [left, top] = [head.x * sight.zoom + sight.x, head.y * sight.zoom + sight.y];
  const [right, bottom] = [left + head.width * sight.zoom, top + head.height * sight.zoom];
  if (left < 0 || top < 0 || right > room.width || bottom > room.height) return false;
  const map = mapSize(room);
  const isUnderMap = right > room.width - MAP_EDGE - map.width && bottom > room.height - MAP_EDGE - map.height;
  return !isUnderMap || isFullyVisible(layout, sight, room);
}

export type Corner = (typeof CORNERS)[number];

/** The corners in which the minimap would cover no step and no edge. */
export function freeCorners(layout: Layout, { x, y, zoom }: GraphView, room: Room): readonly Corner[] {
  const map = mapSize(room);
  const [right, bottom] = [room.width - MAP_EDGE - map.width, room.height - MAP_EDGE - map.height];
  // In graph coordinates.
  const free = CORNERS.map((corner) => {
    const [left, top] = [corner.endsWith("right") ? right : MAP_EDGE, corner.startsWith("bottom") ? bottom : MAP_EDGE];
    return {
      corner,
      left: (left - x) / zoom,
      top: (top - y) / zoom,
      right: (left + map.width - x) / zoom,
      bottom: (top + map.height - y) / zoom,
    };
  });
  const covers = (one: (typeof free)[number], left: number, top: number, right: number, bottom: number) =>
    one.left <= right && left <= one.right && one.top <= bottom && top <= one.bottom;
  const isFree = (one: (typeof free)[number]) => {
    for (const place of layout.places.values()) {
      if (covers(one, place.x, place.y, place.x + place.width, place.y + place.height)) return false;
    }
    for (const route of layout.routes.values()) {
      for (let end = 1; end < route.length; end++) {
        const [from, to] = [route[end - 1]!, route[end]!];
        if (covers(one, Math.min(from.x, to.x), Math.min(from.y, to.y), Math.max(from.x, to.x), Math.max(from.y, to.y)))
          return false;
      }
    }
    return true;
  };
  return free.filter(isFree).map(({ corner }) => corner);
}

/** The node nearest to the centre of the frame, among those that are in both layouts. */
export function middleOf(before: Layout, after: Layout, { x, y, zoom }: GraphView, room: Room): string | null {
  const [middleX, middleY] = [(room.width / 2 - x) / zoom, (room.height / 2 - y) / zoom];
  let best: { id: string; distance: number } | null = null;
  for (const [id, place] of before.places) {
    if (!after.places.has(id)) continue;
    const head = headOf(place);
    const distance = Math.hypot(head.x + head.width / 2 - middleX, head.y + head.height / 2 - middleY);
    if (best === null || distance < best.distance) best = { id, distance };
  }
  return best?.id ?? null;
}

export function mapSize(room: Room): Room {
  const width = Math.round(Math.min(176, Math.max(88, room.width * 0.22)));
  return { width, height: Math.round(width * 0.6) };
}

/** For a group, which may be larger than the screen: the position of its name. */
function headOf({ x, y, width, height }: Place): Place {
  return { x, y, width: Math.min(width, STEP.width), height: Math.min(height, STEP.height) };
}
