/** The transitive reduction of the graph: leaves out edges that a longer path implies, except error edges. */

import type { components } from "../api/schema.d.ts";

export type GraphEdge = components["schemas"]["GraphEdge"];

const BITS = 32;

export function transitiveReduction(
  steps: readonly { readonly name: string }[],
  edges: readonly GraphEdge[],
): GraphEdge[] {
  const indexes = new Map(steps.map(({ name }, index) => [name, index]));
  const after: number[][] = steps.map(() => []);
  for (const { from, to } of edges) {
    const [start, end] = [indexes.get(from), indexes.get(to)];
    if (start !== undefined && end !== undefined) after[start]!.push(end);
  }
  const reached = reachable(after);
  return edges.filter(({ from, to, why }) => {
    const [start, end] = [indexes.get(from), indexes.get(to)];
    if (start === undefined || end === undefined) return false;
    return why === "on_error" || !after[start]!.some((other) => other !== end && has(reached[other]!, end));
  });
}

/** The descendants of each step as bit sets, which is fast enough for a thousand steps. */
function reachable(after: readonly (readonly number[])[]): readonly Uint32Array[] {
  const reached: (Uint32Array | undefined)[] = after.map(() => undefined);
  const visit = (index: number): Uint32Array => {
    const known = reached[index];
    if (known !== undefined) return known;
    const set = new Uint32Array(Math.ceil(after.length / BITS));
    reached[index] = set;
    for (const next of after[index]!) {
      set[next >>> 5]! |= 1 << (next & 31);
      const further = visit(next);
      for (let word = 0; word < set.length; word++) set[word]! |= further[word]!;
    }
    return set;
  };
  return after.map((_, index) => visit(index));
}

function has(set: Uint32Array, index: number): boolean {
  return (set[index >>> 5]! & (1 << (index & 31))) !== 0;
}
