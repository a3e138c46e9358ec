/** The rows of the chart: the steps of the run, and what a reader has opened of them, each below the step it is inside of. */

import { childId, type Graph, parentOf } from "../../graph/plan.ts";
import type { RunModel } from "../model.ts";
import type { ChildGraph } from "../useChildGraphs.ts";

export interface Row {
  /** A node of the graph, or an item, `step[17]`. */
  readonly id: string;
  /** The name of the step or the item in its run. */
  readonly name: string;
  /** The node that has begun the run which it belongs to; null: it is of the run itself. */
  readonly node: string | null;
  /** Its place among the items of its step; null: a step. */
  readonly index: number | null;
  /** How many rows it is inside of. */
  readonly depth: number;
  /** What can be shown inside of it. */
  readonly opens: "items" | "steps" | null;
  readonly open: boolean;
}

/** What steps have inside: so many items, or the steps of a run that they have begun. */
type Insides = ReadonlyMap<string, number | "run">;

export function rowsOf(
  graph: Graph,
  insides: Insides,
  open: ReadonlySet<string>,
  pictures: ReadonlyMap<string, ChildGraph>,
  node: string | null = null,
  depth = 0,
): readonly Row[] {
  return graph.steps.flatMap(({ name }) => {
    const id = node === null ? name : childId(node, name);
    const opens = opensOf(insides.get(name), node);
    const isOpen = opens !== null && open.has(id);
    const row: Row = { id, name, node, index: null, depth, opens, open: isOpen };
    if (!isOpen) return [row];
    if (opens === "items") return [row, ...itemsOf(name, insides.get(name) as number)];
    const child = pictures.get(id);
    if (child === undefined) return [row];
    return [row, ...rowsOf(child.graph, readInsides(insidesOf(child.model)), open, pictures, id, depth + 1)];
  });
}

function opensOf(inside: number | "run" | undefined, node: string | null): Row["opens"] {
  if (inside === "run") return "steps";
  // The items of another run are on that run's page.
  return node === null && (inside ?? 0) > 0 ? "items" : null;
}

function itemsOf(step: string, total: number): readonly Row[] {
  return Array.from({ length: total }, (_, index) => {
    const name = `${step}[${index}]`;
    return { id: name, name, node: null, index, depth: 1, opens: null, open: false };
  });
}

/** What the steps have inside, as one text: it changes only when one has something else. */
export function insidesOf({ steps }: RunModel): string {
  const insides: string[] = [];
  for (const { name, items, child } of steps.values()) {
    if (items !== null) insides.push(`${name}=${items}`);
    else if (child !== null) insides.push(`${name}=run`);
  }
  return insides.join(";");
}

export function readInsides(insides: string): Insides {
  const pairs = insides === "" ? [] : insides.split(";").map((pair) => pair.split("=") as [string, string]);
  return new Map(pairs.map(([name, inside]) => [name, inside === "run" ? inside : Number(inside)]));
}

/** Its name, and inside of which steps it is, from the inside out. */
export function fullName({ name, node }: Row): string {
  const names = [name];
  for (let around = node; around !== null; around = parentOf(around).node) names.push(parentOf(around).name);
  return names.join(" in ");
}
