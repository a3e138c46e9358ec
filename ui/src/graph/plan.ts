/** What is to be laid out: a workflow's steps, and what is shown inside of some of them. */

import type { components } from "../api/schema.d.ts";
import type { Box, Plan } from "./layout.ts";
import { withoutDetours } from "./reduction.ts";

export type Graph = components["schemas"]["Graph"];

/** What a reader has opened: so many items, or the steps of the run that the step has begun. */
export type Inside = { readonly items: number } | { readonly graph: Graph };

export const STEP = { width: 224, height: 68 };
export const ITEM = { width: 122, height: 28 };

/** The node of a child's step, below the node that has begun the child; a name of a step has no slash. */
export function childId(node: string, name: string): string {
  return `${node}/${name}`;
}

/** The node that has begun the run which the step belongs to, and the step's name in it; null: a step of the run itself. */
export function parentOf(id: string): { readonly node: string | null; readonly name: string } {
  const slash = id.lastIndexOf("/");
  return slash < 0 ? { node: null, name: id } : { node: id.slice(0, slash), name: id.slice(slash + 1) };
}

/** How many runs are around it. */
export function depthOf(id: string): number {
  return id.split("/").length - 1;
}

/** The node of an item by its place in the group, not by its number: which items are shown changes as a run goes on. */
export function slotId(step: string, slot: number): string {
  return `${step}#${slot}`;
}

export function isSlot(id: string): boolean {
  return id.includes("#");
}

/** `insides` by nodes: what is inside of a step that is inside of another is under its whole path. */
export function planOf(graph: Graph, insides: ReadonlyMap<string, Inside>, within: string | null = null): Plan {
  const idOf = (name: string) => (within === null ? name : childId(within, name));
  return {
    boxes: graph.steps.map(({ name }): Box => {
      const id = idOf(name);
      const inside = insides.get(id);
      return { id, ...STEP, ...(inside === undefined ? {} : { inside: insidePlan(id, inside, insides) }) };
    }),
    ways: withoutDetours(graph.steps, graph.edges).map(({ from, to }) => ({
      id: `${idOf(from)}>${idOf(to)}`,
      from: idOf(from),
      to: idOf(to),
    })),
  };
}

function insidePlan(node: string, inside: Inside, insides: ReadonlyMap<string, Inside>): Plan {
  if ("graph" in inside) return planOf(inside.graph, insides, node);
  const boxes = Array.from({ length: inside.items }, (_, slot) => ({ id: slotId(node, slot), ...ITEM }));
  return { boxes, ways: "rows" };
}
