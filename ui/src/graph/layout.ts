/**
 * Computes the positions of steps with elk in a web worker, which does not block the page.
 *
 * Unless the user has chosen a direction, both are tried and the one that shows the graph larger is used. The edges
 * follow elk's routes, which go around the steps. The content of a group is laid out first and determines its size.
 */

import type { ElkExtendedEdge, ElkNode } from "elkjs/lib/elk-api";

import { layOutByElk } from "./elk.ts";

export interface Box {
  readonly id: string;
  readonly width: number;
  readonly height: number;
  readonly inside?: Plan;
}

export interface PlanEdge {
  readonly id: string;
  readonly from: string;
  readonly to: string;
}

/** A graph, or boxes in rows. */
export interface Plan {
  readonly boxes: readonly Box[];
  readonly edges: readonly PlanEdge[] | "rows";
}

export type Direction = "RIGHT" | "DOWN";

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Rect extends Point {
  readonly width: number;
  readonly height: number;
}

export interface Layout {
  readonly direction: Direction;
  readonly width: number;
  readonly height: number;
  readonly rects: ReadonlyMap<string, Rect>;
  readonly routes: ReadonlyMap<string, readonly Point[]>;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** The padding of a group. Its name and status are above the content and need a minimum width. */
export const GROUP = { top: 56, side: 12, width: 300 };
const GAP = 8;
const BETWEEN = { layers: 48, boxes: 24 };

const OPTIONS = {
  "elk.algorithm": "layered",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.layered.spacing.nodeNodeBetweenLayers": String(BETWEEN.layers),
  "elk.spacing.nodeNode": String(BETWEEN.boxes),
  // The order of the definition breaks ties, so that the layout of a workflow is stable.
  "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
};

// Straighter edges, but several times slower: it would take seconds for three hundred steps.
const CAREFUL = { "elk.layered.nodePlacement.strategy": "NETWORK_SIMPLEX" };
const QUICK = { "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF", "elk.layered.thoroughness": "3" };
const LARGE = 100;

export async function layOut(plan: Plan, wanted: Direction | null, pane: Size): Promise<Layout> {
  if (wanted !== null) return laidOut(plan, wanted);
  if (plan.boxes.length > LARGE) return laidOut(plan, likelyDirection(plan, pane));
  const [right, down] = await Promise.all([laidOut(plan, "RIGHT"), laidOut(plan, "DOWN")]);
  return scale(right, pane) >= scale(down, pane) ? right : down;
}

/** The zoom is at most 1. If both directions fit, left to right wins. */
function scale(layout: Size, pane: Size): number {
  return Math.min(1, pane.width / layout.width, pane.height / layout.height);
}

/** Estimates the direction for a large graph from its longest path and its widest layer. */
function likelyDirection({ boxes, edges }: Plan, pane: Size): Direction {
  const after = new Map<string, string[]>(boxes.map(({ id }) => [id, []]));
  const open = new Map<string, number>(boxes.map(({ id }) => [id, 0]));
  for (const { from, to } of edges === "rows" ? [] : edges) {
    after.get(from)?.push(to);
    open.set(to, (open.get(to) ?? 0) + 1);
  }
  let layers = 0;
  let widest = 1;
  for (let layer = boxes.flatMap(({ id }) => (open.get(id) === 0 ? [id] : [])); layer.length > 0; layers++) {
    widest = Math.max(widest, layer.length);
    const next: string[] = [];
    for (const to of layer.flatMap((id) => after.get(id) ?? [])) {
      open.set(to, open.get(to)! - 1);
      if (open.get(to) === 0) next.push(to);
    }
    layer = next;
  }
  const { width, height } = boxes[0]!;
  const right = { width: layers * (width + BETWEEN.layers), height: widest * (height + BETWEEN.boxes) };
  const down = { width: widest * (width + BETWEEN.boxes), height: layers * (height + BETWEEN.layers) };
  return scale(right, pane) >= scale(down, pane) ? "RIGHT" : "DOWN";
}

async function laidOut(plan: Plan, direction: Direction): Promise<Layout> {
  if (plan.edges === "rows") return inRows(plan.boxes, direction);
  const insides = new Map<string, Layout>();
  const children = await Promise.all(
    plan.boxes.map(async ({ id, width, height, inside }): Promise<ElkNode> => {
      if (inside === undefined) return { id, width, height };
      const found = await laidOut(inside, direction);
      insides.set(id, found);
      return {
        id,
        width: Math.max(width, GROUP.width, found.width + 2 * GROUP.side),
        height: found.height + GROUP.top + GROUP.side,
      };
    }),
  );
  const whole: ElkNode = {
    id: "root",
    layoutOptions: { ...OPTIONS, ...(plan.boxes.length > LARGE ? QUICK : CAREFUL), "elk.direction": direction },
    children,
    edges: plan.edges.map(({ id, from, to }) => ({ id, sources: [from], targets: [to] })),
  };
  const done = await layOutByElk(whole);
  const rects = new Map<string, Rect>();
  const routes = new Map<string, readonly Point[]>((done.edges ?? []).map((edge) => [edge.id, routeOf(edge)]));
  for (const { id, x = 0, y = 0, width = 0, height = 0 } of done.children ?? []) {
    rects.set(id, { x, y, width, height });
    const inside = insides.get(id);
    if (inside === undefined) continue;
    const moved = (point: Point) => ({ x: point.x + x + GROUP.side, y: point.y + y + GROUP.top });
    for (const [name, rect] of inside.rects) rects.set(name, { ...rect, ...moved(rect) });
    for (const [name, route] of inside.routes) routes.set(name, route.map(moved));
  }
  return { direction, width: done.width ?? 1, height: done.height ?? 1, rects, routes };
}

function inRows(boxes: readonly Box[], direction: Direction): Layout {
  const columns = Math.max(1, Math.ceil(Math.sqrt(boxes.length * 0.8)));
  const width = Math.max(0, ...boxes.map((box) => box.width));
  const height = Math.max(0, ...boxes.map((box) => box.height));
  const rects = new Map(
    boxes.map((box, number) => [
      box.id,
      {
        x: (number % columns) * (width + GAP),
        y: Math.floor(number / columns) * (height + GAP),
        width: box.width,
        height: box.height,
      },
    ]),
  );
  const rows = Math.ceil(boxes.length / columns);
  return {
    direction,
    width: Math.min(columns, boxes.length) * (width + GAP) - GAP,
    height: rows * (height + GAP) - GAP,
    rects,
    routes: new Map(),
  };
}

function routeOf(edge: ElkExtendedEdge): readonly Point[] {
  const section = edge.sections?.[0];
  return section === undefined ? [] : [section.startPoint, ...(section.bendPoints ?? []), section.endPoint];
}
