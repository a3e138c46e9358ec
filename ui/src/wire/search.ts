/** The URL parameters of the wire tab. */

import type { Part } from "./attemptText.ts";

export interface WireSearch {
  /** The expanded exchanges, separated by commas; `none` collapses a single exchange too. */
  readonly exchange?: number | string;
  /** The two compared attempts: `1,3`. */
  readonly compare?: string;
  /** The compared part; the responses by default. */
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

/** Null if the URL does not contain it. */
export function openedIn(exchange: number | string | undefined): ReadonlySet<string> | null {
  if (exchange === undefined) return null;
  return new Set(exchange === NONE ? [] : String(exchange).split(","));
}

export function addressOf(opened: ReadonlySet<string>): number | string {
  const names = [...opened].join(",");
  // The router quotes texts that look like numbers.
  return names === "" ? NONE : /^\d+$/.test(names) ? Number(names) : names;
}

export function pairIn(compare: string | undefined): Pair | null {
  if (compare === undefined) return null;
  const [before, after] = compare.split(",").map(Number);
  return { before: before!, after: after! };
}
