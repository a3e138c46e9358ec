/**
 * Parses a text that is known to be valid JSON; a callback of the caller converts the numbers.
 *
 * `JSON.parse` can also pass on the source text of numbers, but is ten times slower then.
 */

/** `isInside`: the number is below one of the named fields. */
export type MakeNumber = (source: string, isInside: boolean) => unknown;

export function readJson(
  text: string,
  makeNumber: MakeNumber,
  fields: ReadonlySet<string>,
  isInside: boolean,
): unknown {
  return new Reader(text, makeNumber, fields).value(isInside);
}

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

class Reader {
  #at = 0;
  readonly #text: string;
  readonly #makeNumber: MakeNumber;
  readonly #fields: ReadonlySet<string>;

  constructor(text: string, makeNumber: MakeNumber, fields: ReadonlySet<string>) {
    this.#text = text;
    this.#makeNumber = makeNumber;
    this.#fields = fields;
  }

  value(isInside: boolean): unknown {
    this.#skipSpace();
    switch (this.#text[this.#at]) {
      case "{":
        return this.#object(isInside);
      case "[":
        return this.#list(isInside);
      case '"':
        return this.#string();
      case "t":
        return this.#word(true);
      case "f":
        return this.#word(false);
      case "n":
        return this.#word(null);
      default:
        return this.#makeNumber(this.#number(), isInside);
    }
  }

  #skipSpace(): void {
    while (this.#text.charCodeAt(this.#at) <= SPACE) this.#at++;
  }

  #word<Word extends boolean | null>(word: Word): Word {
    this.#at += String(word).length;
    return word;
  }

  #object(isInside: boolean): object {
    const object: Record<string, unknown> = {};
    if (this.#isEmpty("}")) return object;
    do {
      this.#skipSpace();
      const name = this.#string();
      this.#skipSpace();
      // Skip the colon.
      this.#at++;
      const value = this.value(isInside || this.#fields.has(name));
      if (name === "__proto__")
        Object.defineProperty(object, name, { value, configurable: true, enumerable: true, writable: true });
      else object[name] = value;
    } while (this.#goesOn());
    return object;
  }

  #list(isInside: boolean): unknown[] {
    const list: unknown[] = [];
    if (this.#isEmpty("]")) return list;
    do list.push(this.value(isInside));
    while (this.#goesOn());
    return list;
  }

  #isEmpty(end: string): boolean {
    this.#at++;
    this.#skipSpace();
    if (this.#text[this.#at] !== end) return false;
    this.#at++;
    return true;
  }

  /** Skips a comma or the closing bracket. */
  #goesOn(): boolean {
    this.#skipSpace();
    return this.#text.charCodeAt(this.#at++) === COMMA;
  }

  #string(): string {
    const text = this.#text;
    const begin = this.#at;
    let isEscaped = false;
    let end = begin + 1;
    for (let code = text.charCodeAt(end); code !== QUOTE; code = text.charCodeAt(++end)) {
      if (code !== BACKSLASH) continue;
      isEscaped = true;
      end++;
    }
    this.#at = end + 1;
    return isEscaped ? (JSON.parse(text.slice(begin, end + 1)) as string) : text.slice(begin + 1, end);
  }

  #number(): string {
    const begin = this.#at;
    while (isOfNumber(this.#text.charCodeAt(this.#at))) this.#at++;
    return this.#text.slice(begin, this.#at);
  }
}

/** One of `0` to `9`, `.`, `-`, `+`, `e` and `E`. */
function isOfNumber(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) || code === 0x2e || code === 0x2d || code === 0x2b || code === 0x65 || code === 0x45
  );
}
