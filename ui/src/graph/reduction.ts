/** The edges worth drawing: one that a longer way says already is left out, unless it is there for a failure. */

import type { components } from "../api/schema.d.ts";

export type GraphEdge = components["schemas"]["GraphEdge"];

const BITS = 32;

export function withoutDetours(steps: readonly { readonly name: string }[], edges: readonly GraphEdge[]): GraphEdge[] {
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

/** For each step the set of all that come after it, as bits: a graph of a thousand steps is still a moment's work. */
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
