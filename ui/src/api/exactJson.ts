/**
 * JSON whose numbers stay as they were written: `1.0` is no `1` for an expression of a workflow, and the language keeps
 * about 16 digits.
 *
 * A number that would be written otherwise is an `ExactNumber`: `JSON.stringify` and `String` write it as it came. In an
 * answer of the API the page reckons with most numbers: there only values of agents and runs are so, and what a double
 * cannot hold. A browser that cannot write numbers so reads all of them as ordinary ones.
 */

import { readJson } from "./readJson.ts";

declare global {
  interface JSON {
    rawJSON?(text: string): object;
  }
}

export const KEEPS_ALL_DIGITS = JSON.rawJSON !== undefined;

export class ExactNumber {
  // Private: whoever walks through values finds nothing inside.
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  /** Whether it is more than an ordinary number can be. */
  get isLong(): boolean {
    return !holds(Number(this.#source), this.#source);
  }

  toString(): string {
    return this.#source;
  }

  toJSON(): object {
    return JSON.rawJSON!(this.#source);
  }
}

export function isExact(value: unknown): value is ExactNumber {
  return value instanceof ExactNumber;
}

/** What to reckon with; null: it is no number. */
export function asNumber(value: unknown): number | null {
  return typeof value === "number" || isExact(value) ? Number(value) : null;
}

// The browser reads megabytes twice as fast. It may be in a text: then only the time is lost.
const DOUBTFUL = /(?:^|[\s:,[])-?(?:\d[\d.]{15}|\d[\d.]*[eE]|\d+\.(?:\d*0(?!\d)|0{6}))/;

// What agents and runs are given and give: theirs, whatever is in it.
const VALUES: ReadonlySet<string> = new Set(["input", "output", "detail", "card"]);

/** A value that somebody has written. */
export function parseExact(text: string): unknown {
  return parse(text, true);
}

/** An answer or an event of the API. */
export function parseAnswer(text: string): unknown {
  return parse(text, false);
}

function parse(text: string, asWritten: boolean): unknown {
  const ordinary = JSON.parse(text) as unknown;
  return KEEPS_ALL_DIGITS && DOUBTFUL.test(text) ? readJson(text, numberOf, VALUES, asWritten) : ordinary;
}

function numberOf(source: string, asWritten: boolean): number | ExactNumber {
  const value = Number(source);
  return String(value) === source || (!asWritten && holds(value, source)) ? value : new ExactNumber(source);
}

/** Whether the number, written again, is the one that was written. */
function holds(value: number, source: string): boolean {
  return Number.isFinite(value) && digitsOf(String(value)) === digitsOf(source);
}

/** One text for all ways to write a number: its digits, and the place of the last one. */
function digitsOf(source: string): string {
  const [, sign, whole, part = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source)!;
  const written = `${whole}${part}`.replace(/^0+/, "");
  const digits = written.replace(/0+$/, "");
  return digits === "" ? "0" : `${sign}${digits}e${Number(power) - part.length + written.length - digits.length}`;
}
