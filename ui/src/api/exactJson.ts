/**
 * JSON whose numbers keep their notation: workflow expressions distinguish `1.0` from `1`, and JavaScript numbers have
 * about 16 digits.
 *
 * A number that JavaScript would write differently becomes an `ExactNumber`, which `JSON.stringify` and `String` write
 * in its original notation. In API responses this applies only to the values of agents and runs, and to numbers that do
 * not fit a double; the page calculates with the rest. A browser without raw JSON support reads ordinary numbers.
 */

import { readJson } from "./readJson.ts";

declare global {
  interface JSON {
    rawJSON?(text: string): object;
  }
}

export const KEEPS_ALL_DIGITS = JSON.rawJSON !== undefined;

export class ExactNumber {
  // Private, so that code that walks through values finds no fields.
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  /** Whether an ordinary number cannot represent it. */
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

/** The numeric value, or null if the value is not a number. */
export function asNumber(value: unknown): number | null {
  return typeof value === "number" || isExact(value) ? Number(value) : null;
}

// The browser's parser is twice as fast. A match inside a string only costs time.
const DOUBTFUL = /(?:^|[\s:,[])-?(?:\d[\d.]{15}|\d[\d.]*[eE]|\d+\.(?:\d*0(?!\d)|0{6}))/;

// The inputs and outputs of agents and runs, which the page must not change.
const VALUES: ReadonlySet<string> = new Set(["input", "output", "detail", "card"]);

/** Parses a value that a person has entered. */
export function parseExact(text: string): unknown {
  return parse(text, true);
}

/** Parses a response or an event of the API. */
export function parseResponse(text: string): unknown {
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

/** Whether JavaScript writes the number back in the same notation. */
function holds(value: number, source: string): boolean {
  return Number.isFinite(value) && digitsOf(String(value)) === digitsOf(source);
}

/** A canonical form of a number: its digits, and the position of the last one. */
function digitsOf(source: string): string {
  const [, sign, whole, part = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source)!;
  const written = `${whole}${part}`.replace(/^0+/, "");
  const digits = written.replace(/0+$/, "");
  return digits === "" ? "0" : `${sign}${digits}e${Number(power) - part.length + written.length - digits.length}`;
}
