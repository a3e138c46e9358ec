/**
 * Where the steps of a graph stand: laid out by elk in a worker, so that the page never stops for it.
 *
 * Both directions are tried; the one that shows the graph larger in the place it has is taken, unless the reader has
 * chosen. Elk's own routes of the edges are kept: they go around the steps.
 */

import ELK, { type ElkExtendedEdge, type ElkNode } from "elkjs/lib/elk-api";
import ElkWorker from "elkjs/lib/elk-worker.min.js?worker";

export interface GraphStep {
  readonly name: string;
  readonly width: number;
  readonly height: number;
}

export interface GraphEdge {
  readonly id: string;
  readonly from: string;
  readonly to: string;
}

export type Direction = "RIGHT" | "DOWN";

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Layout {
  readonly direction: Direction;
  readonly width: number;
  readonly height: number;
  readonly places: ReadonlyMap<string, Point>;
  readonly routes: ReadonlyMap<string, readonly Point[]>;
}

const elk = new ELK({ workerFactory: () => new ElkWorker() });

const OPTIONS = {
  "elk.algorithm": "layered",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.layered.spacing.nodeNodeBetweenLayers": "48",
  "elk.spacing.nodeNode": "24",
  "elk.layered.nodePlacement.strategy": "NETWORK_SIMPLEX",
  // The order of the definition breaks ties: the same workflow looks the same each time.
  "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
};

export async function layOut(
  steps: readonly GraphStep[],
  edges: readonly GraphEdge[],
  wanted: Direction | null,
  place: { readonly width: number; readonly height: number },
): Promise<Layout> {
  if (wanted !== null) return laidOut(steps, edges, wanted);
  const [right, down] = await Promise.all([laidOut(steps, edges, "RIGHT"), laidOut(steps, edges, "DOWN")]);
  return scale(right, place) >= scale(down, place) ? right : down;
}

function scale(layout: Layout, place: { readonly width: number; readonly height: number }): number {
  return Math.min(place.width / layout.width, place.height / layout.height);
}

async function laidOut(
  steps: readonly GraphStep[],
  edges: readonly GraphEdge[],
  direction: Direction,
): Promise<Layout> {
  const graph: ElkNode = {
    id: "root",
    layoutOptions: { ...OPTIONS, "elk.direction": direction },
    children: steps.map(({ name, width, height }) => ({ id: name, width, height })),
    edges: edges.map(({ id, from, to }) => ({ id, sources: [from], targets: [to] })),
  };
  const done = await elk.layout(graph);
  return {
    direction,
    width: done.width ?? 1,
    height: done.height ?? 1,
    places: new Map((done.children ?? []).map((node) => [node.id, { x: node.x ?? 0, y: node.y ?? 0 }])),
    routes: new Map((done.edges ?? []).map((edge) => [edge.id, routeOf(edge)])),
  };
}

function routeOf(edge: ElkExtendedEdge): readonly Point[] {
  const section = edge.sections?.[0];
  return section === undefined ? [] : [section.startPoint, ...(section.bendPoints ?? []), section.endPoint];
}
