/** What is to be laid out: a workflow's steps, and what is shown inside of some of them. */

import type { components } from "../api/schema.d.ts";
import type { Box, Plan } from "./layout.ts";
import { withoutDetours } from "./reduction.ts";

export type Graph = components["schemas"]["Graph"];

/** What a reader has opened: so many items, or the steps of the run that the step has begun. */
export type Inside = { readonly items: number } | { readonly graph: Graph };

export const STEP = { width: 224, height: 68 };
export const ITEM = { width: 122, height: 28 };

/** The node of a child's step; a name of a step has no slash. */
export function childId(step: string, name: string): string {
  return `${step}/${name}`;
}

/** The node of an item by its place in the group, not by its number: which items are shown changes as a run goes on. */
export function slotId(step: string, slot: number): string {
  return `${step}#${slot}`;
}

export function planOf(graph: Graph, insides: ReadonlyMap<string, Inside>, within: string | null = null): Plan {
  const idOf = (name: string) => (within === null ? name : childId(within, name));
  return {
    boxes: graph.steps.map(({ name }): Box => {
      const inside = within === null ? insides.get(name) : undefined;
      return { id: idOf(name), ...STEP, ...(inside === undefined ? {} : { inside: insidePlan(name, inside) }) };
    }),
    ways: withoutDetours(graph.steps, graph.edges).map(({ from, to }) => ({
      id: `${idOf(from)}>${idOf(to)}`,
      from: idOf(from),
      to: idOf(to),
    })),
  };
}

function insidePlan(step: string, inside: Inside): Plan {
  if ("graph" in inside) return planOf(inside.graph, new Map(), step);
  const boxes = Array.from({ length: inside.items }, (_, slot) => ({ id: slotId(step, slot), ...ITEM }));
  return { boxes, ways: "rows" };
}
