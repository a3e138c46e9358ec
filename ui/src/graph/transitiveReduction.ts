/** The transitive reduction of the graph: leaves out edges that a longer path implies, except error edges. */

import type { components } from "../api/schema.d.ts";

export type GraphEdge = components["schemas"]["GraphEdge"];

const BITS = 32;

export function transitiveReduction(
  steps: readonly { readonly name: string }[],
  edges: readonly GraphEdge[],
): GraphEdge[] {
  const places = new Map(steps.map(({ name }, place) => [name, place]));
  const after: number[][] = steps.map(() => []);
  for (const { from, to } of edges) {
    const [start, end] = [places.get(from), places.get(to)];
    if (start !== undefined && end !== undefined) after[start]!.push(end);
  }
  const reached = reachable(after);
  return edges.filter(({ from, to, why }) => {
    const [start, end] = [places.get(from), places.get(to)];
    if (start === undefined || end === undefined) return false;
    return why === "on_error" || !after[start]!.some((other) => other !== end && has(reached[other]!, end));
  });
}

/** The descendants of each step as bit sets, which is fast enough for a thousand steps. */
function reachable(after: readonly (readonly number[])[]): readonly Uint32Array[] {
  const reached: (Uint32Array | undefined)[] = after.map(() => undefined);
  const visit = (place: number): Uint32Array => {
    const known = reached[place];
    if (known !== undefined) return known;
    const set = new Uint32Array(Math.ceil(after.length / BITS));
    reached[place] = set;
    for (const next of after[place]!) {
      set[next >>> 5]! |= 1 << (next & 31);
      const further = visit(next);
      for (let word = 0; word < set.length; word++) set[word]! |= further[word]!;
    }
    return set;
  };
  return after.map((_, place) => visit(place));
}

function has(set: Uint32Array, place: number): boolean {
  return (set[place >>> 5]! & (1 << (place & 31))) !== 0;
}
