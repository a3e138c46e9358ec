/**
 * What of a graph is seen in its frame: all of it where its words can be read then, else the part that matters.
 *
 * Pure: places are those of the layout, what comes out is where the graph's corner is on the screen and how large it is.
 */

import type { Layout, Place, Room } from "./layout.ts";
import { STEP } from "./plan.ts";

export interface GraphView {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

// Words of 12 pixels are 9 then: whatever is shown without being asked for is at least so large.
export const READABLE = 0.75;
export const EDGE = 20;
// How far React Flow puts the map from the corner.
const MAP_EDGE = 15;
// The map is in the first of them in which it covers nothing.
const CORNERS = ["bottom-right", "bottom-left", "top-right", "top-left"] as const;

/** All of it, or null where that would be too small to read. */
export function whole(layout: Layout, room: Room): GraphView | null {
  const zoom = Math.min(1, (room.width - 2 * EDGE) / layout.width, (room.height - 2 * EDGE) / layout.height);
  return zoom < READABLE ? null : around(layout, room, { x: 0, y: 0, width: 0, height: 0 }, zoom);
}

/** The place in the middle, but nothing empty at the edges: beside the map, where there is one, may be. */
export function around(layout: Layout, room: Room, place: Place, zoom: number): GraphView {
  const map = mapSize(room);
  const head = headOf(place);
  // In the middle of a wide frame nothing is under the map; in a narrow one, or at the lower end, it may be.
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
  // Rounding alone puts nothing out of sight.
  if (size * zoom <= to - from + 1) return (from + to - size * zoom) / 2;
  const wanted = (from + to) / 2 - middle * zoom;
  return Math.min(from, Math.max(to - spare - size * zoom, wanted));
}

/** With the place where it was on the screen. */
export function held(before: Place, after: Place, { x, y, zoom }: GraphView): GraphView {
  return { x: x + (before.x - after.x) * zoom, y: y + (before.y - after.y) * zoom, zoom };
}

/** Whether all of it is between the edges of the frame. */
export function isFullyVisible(layout: Layout, { x, y, zoom }: GraphView, room: Room): boolean {
  return x >= 0 && y >= 0 && x + layout.width * zoom <= room.width && y + layout.height * zoom <= room.height;
}

/** Whether one can read it, also where the reader has put the map into the corner that it has. */
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

/** Where the map would cover no step and no way between steps. */
export function freeCorners(layout: Layout, { x, y, zoom }: GraphView, room: Room): readonly Corner[] {
  const map = mapSize(room);
  const [right, bottom] = [room.width - MAP_EDGE - map.width, room.height - MAP_EDGE - map.height];
  // As they lie in the graph.
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

/** The node nearest to the middle of the frame, of those that are in both. */
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

/** Of a group, which may be larger than the screen: where its name is. */
function headOf({ x, y, width, height }: Place): Place {
  return { x, y, width: Math.min(width, STEP.width), height: Math.min(height, STEP.height) };
}
