/**
 * JSON whose numbers stay as they were written, though the language keeps about 16 digits of them.
 *
 * A number that a double holds is an ordinary one. Any other is an `ExactNumber`: `JSON.stringify` and `String` write it
 * as it came. A browser that cannot write it so reads all numbers as ordinary ones.
 */

declare global {
  interface JSON {
    rawJSON?(text: string): object;
    parse(text: string, reviver: (key: string, value: unknown, context?: { readonly source?: string }) => unknown): unknown;
  }
}

export const KEEPS_ALL_DIGITS = JSON.rawJSON !== undefined;

export class ExactNumber {
  // Private: whoever walks through values finds nothing inside.
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
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

// Megabytes are read much faster without asking for each value. It may be in a text: then only the time is lost.
const DOUBTFUL = /(?:^|[\s:,[])-?(?:\d[\d.]{15}|\d[\d.]*[eE])/;

export function parseExact(text: string): unknown {
  if (!KEEPS_ALL_DIGITS || !DOUBTFUL.test(text)) return JSON.parse(text) as unknown;
  return JSON.parse(text, (_, value, context) =>
    typeof value === "number" && context?.source !== undefined && !holds(value, context.source)
      ? new ExactNumber(context.source)
      : value,
  );
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
