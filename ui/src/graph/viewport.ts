/**
 * Computes the viewport of a graph: the whole graph if its text is readable then, otherwise the relevant part.
 *
 * Pure. Positions are those of the layout; the result is the offset and the zoom of the graph on the screen.
 */

import type { Layout, Rect, Size } from "./layout.ts";
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
export function whole(layout: Layout, pane: Size): GraphView | null {
  const zoom = Math.min(1, (pane.width - 2 * EDGE) / layout.width, (pane.height - 2 * EDGE) / layout.height);
  return zoom < READABLE ? null : around(layout, pane, { x: 0, y: 0, width: 0, height: 0 }, zoom);
}

/** Centres the position without empty space at the edges, except next to the minimap. */
export function around(layout: Layout, pane: Size, rect: Rect, zoom: number): GraphView {
  const map = mapSize(pane);
  const head = headOf(rect);
  // In a wide frame the centre is never under the minimap; in a narrow one, or at the lower end, it can be.
  const isBeside =
    layout.width * zoom > pane.width - 2 * EDGE + 1 &&
    (pane.width + head.width * zoom) / 2 < pane.width - MAP_EDGE - map.width;
  return {
    x: along(layout.width, head.x + head.width / 2, zoom, EDGE, pane.width - EDGE, map.width),
    y: along(layout.height, head.y + head.height / 2, zoom, EDGE, pane.height - EDGE, isBeside ? 0 : map.height),
    zoom,
  };
}

function along(size: number, middle: number, zoom: number, from: number, to: number, spare: number): number {
  // Tolerance for rounding.
  if (size * zoom <= to - from + 1) return (from + to - size * zoom) / 2;
  const wanted = (from + to) / 2 - middle * zoom;
  return Math.min(from, Math.max(to - spare - size * zoom, wanted));
}

/** Keeps the node at the same position on the screen. */
export function held(before: Rect, after: Rect, { x, y, zoom }: GraphView): GraphView {
  return { x: x + (before.x - after.x) * zoom, y: y + (before.y - after.y) * zoom, zoom };
}

/** Whether it is completely inside the frame. */
export function isFullyVisible(layout: Layout, { x, y, zoom }: GraphView, pane: Size): boolean {
  return x >= 0 && y >= 0 && x + layout.width * zoom <= pane.width && y + layout.height * zoom <= pane.height;
}

/** Whether it is readable and not covered by the minimap. */
export function isVisible(layout: Layout, rect: Rect, view: GraphView, pane: Size): boolean {
  const head = headOf(rect);
  const [left, top] = [head.x * view.zoom + view.x, head.y * view.zoom + view.y];
  const [right, bottom] = [left + head.width * view.zoom, top + head.height * view.zoom];
  if (left < 0 || top < 0 || right > pane.width || bottom > pane.height) return false;
  const map = mapSize(pane);
  const isUnderMap = right > pane.width - MAP_EDGE - map.width && bottom > pane.height - MAP_EDGE - map.height;
  return !isUnderMap || isFullyVisible(layout, view, pane);
}

export type Corner = (typeof CORNERS)[number];

/** The corners in which the minimap would cover no step and no edge. */
export function freeCorners(layout: Layout, { x, y, zoom }: GraphView, pane: Size): readonly Corner[] {
  const map = mapSize(pane);
  const [right, bottom] = [pane.width - MAP_EDGE - map.width, pane.height - MAP_EDGE - map.height];
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
    for (const rect of layout.rects.values()) {
      if (covers(one, rect.x, rect.y, rect.x + rect.width, rect.y + rect.height)) return false;
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
export function middleOf(before: Layout, after: Layout, { x, y, zoom }: GraphView, pane: Size): string | null {
  const [middleX, middleY] = [(pane.width / 2 - x) / zoom, (pane.height / 2 - y) / zoom];
  let best: { id: string; distance: number } | null = null;
  for (const [id, rect] of before.rects) {
    if (!after.rects.has(id)) continue;
    const head = headOf(rect);
    const distance = Math.hypot(head.x + head.width / 2 - middleX, head.y + head.height / 2 - middleY);
    if (best === null || distance < best.distance) best = { id, distance };
  }
  return best?.id ?? null;
}

export function mapSize(pane: Size): Size {
  const width = Math.round(Math.min(176, Math.max(88, pane.width * 0.22)));
  return { width, height: Math.round(width * 0.6) };
}

/** For a group, which may be larger than the screen: the position of its name. */
function headOf({ x, y, width, height }: Rect): Rect {
  return { x, y, width: Math.min(width, STEP.width), height: Math.min(height, STEP.height) };
}
