/** The input of the layout: the steps of a workflow, and the content of expanded steps. */

import type { components } from "../api/schema.d.ts";
import type { Box, Plan } from "./layout.ts";
import { transitiveReduction } from "./transitiveReduction.ts";

export type Graph = components["schemas"]["Graph"];

/** The content of an expanded step: a number of items, or the steps of its child run. */
export type Inside = { readonly items: number } | { readonly graph: Graph };

export const STEP = { width: 224, height: 68 };
export const ITEM = { width: 122, height: 28 };

/** The steps of a run: of the workflow, or of the block that it runs. Null if the workflow has no such block. */
export function graphOf(graph: Graph, block: string | undefined): Graph | null {
  let found: Graph | null = graph;
  for (const name of block === undefined ? [] : block.split("/"))
    found = found?.steps.find((step) => step.name === name)?.block ?? null;
  return found;
}

/** The node id of a child run's step, below the parent's node. Step names contain no slash. */
export function childId(node: string, name: string): string {
  return `${node}/${name}`;
}

/** The parent node of a child run's step, and the step's name; null for a step of the run itself. */
export function parentOf(id: string): { readonly node: string | null; readonly name: string } {
  const slash = id.lastIndexOf("/");
  return slash < 0 ? { node: null, name: id } : { node: id.slice(0, slash), name: id.slice(slash + 1) };
}

/** The number of parent runs. */
export function depthOf(id: string): number {
  return id.split("/").length - 1;
}

/** The node id of an item by its position in the group: which items are shown changes during a run. */
export function slotId(step: string, slot: number): string {
  return `${step}#${slot}`;
}

export function isSlot(id: string): boolean {
  return id.includes("#");
}

/** `insides` by node id, which is the whole path for nested steps. */
export function planOf(graph: Graph, insides: ReadonlyMap<string, Inside>, within: string | null = null): Plan {
  const idOf = (name: string) => (within === null ? name : childId(within, name));
  return {
    boxes: graph.steps.map(({ name }): Box => {
      const id = idOf(name);
      const inside = insides.get(id);
      return { id, ...STEP, ...(inside === undefined ? {} : { inside: insidePlan(id, inside, insides) }) };
    }),
    edges: transitiveReduction(graph.steps, graph.edges).map(({ from, to }) => ({
      id: `${idOf(from)}>${idOf(to)}`,
      from: idOf(from),
      to: idOf(to),
    })),
  };
}

function insidePlan(node: string, inside: Inside, insides: ReadonlyMap<string, Inside>): Plan {
  if ("graph" in inside) return planOf(inside.graph, insides, node);
  const boxes = Array.from({ length: inside.items }, (_, slot) => ({ id: slotId(node, slot), ...ITEM }));
  return { boxes, edges: "rows" };
}
