/** What of the wire is looked at, as it stands in the address of a run. */

import type { Part } from "./attemptText.ts";

export interface WireSearch {
  /** The exchanges that are open, one or several with commas between them; `none`: not even an only one. */
  readonly exchange?: number | string;
  /** Two attempts that are laid side by side: `1,3`. */
  readonly compare?: string;
  /** What of them; left out: the answers. */
  readonly part?: Part;
}

export interface Pair {
  readonly before: number;
  readonly after: number;
}

const NONE = "none";

export function wireSearch({ exchange, compare, part }: Record<string, unknown>): WireSearch {
  return {
    ...(typeof exchange === "number" || (typeof exchange === "string" && exchange !== "") ? { exchange } : {}),
    ...(typeof compare === "string" && /^\d{1,9},\d{1,9}$/.test(compare) ? { compare } : {}),
    ...(part === "request" || part === "output" ? { part } : {}),
  };
}

/** Null: the address says nothing of it. */
export function openedIn(exchange: number | string | undefined): ReadonlySet<string> | null {
  if (exchange === undefined) return null;
  return new Set(exchange === NONE ? [] : String(exchange).split(","));
}

export function addressOf(opened: ReadonlySet<string>): number | string {
  const names = [...opened].join(",");
  // A number stands in an address as it is, a text that looks like one in quotation marks.
  return names === "" ? NONE : /^\d+$/.test(names) ? Number(names) : names;
}

export function pairIn(compare: string | undefined): Pair | null {
  if (compare === undefined) return null;
  const [before, after] = compare.split(",").map(Number);
  return { before: before!, after: after! };
}
