/** The rows of the timeline: the steps of the run, and below each expanded step its items or child steps. */

import { childId, type Graph, parentOf } from "../../graph/plan.ts";
import type { RunModel } from "../model.ts";
import type { ChildGraph } from "../useChildGraphs.ts";

export interface Row {
  /** A node id of the graph, or an item, `step[17]`. */
  readonly id: string;
  /** The name of the step or the item in its run. */
  readonly name: string;
  /** The parent node of its child run; null for the run itself. */
  readonly node: string | null;
  /** The index of an item; null for a step. */
  readonly index: number | null;
  /** The nesting depth. */
  readonly depth: number;
  /** What the row expands to. */
  readonly opens: "items" | "steps" | null;
  readonly open: boolean;
}

/** The content of steps: a number of items, or the steps of a child run. */
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

/** Below the steps: what undoes them, in the order in which it began. */
export function compensationRows(names: string): readonly Row[] {
  if (names === "") return [];
  return names.split(";").map((name) => ({
    id: name,
    name,
    node: null,
    index: null,
    depth: 0,
    opens: null,
    open: false,
  }));
}

function opensOf(inside: number | "run" | undefined, node: string | null): Row["opens"] {
  if (inside === "run") return "steps";
  // Items of child runs are shown on the child run's page.
  return node === null && (inside ?? 0) > 0 ? "items" : null;
}

function itemsOf(step: string, total: number): readonly Row[] {
  return Array.from({ length: total }, (_, index) => {
    const name = `${step}[${index}]`;
    return { id: name, name, node: null, index, depth: 1, opens: null, open: false };
  });
}

/** The content of all steps as one string, so that an unchanged value causes no render. */
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

/** The name with its parent steps, from the inside out. */
export function fullName({ name, node }: Row): string {
  const names = [name];
  for (let around = node; around !== null; around = parentOf(around).node) names.push(parentOf(around).name);
  return names.join(" in ");
}
