/**
 * Determines what can be entered at a position of an incomplete YAML text: a key, a value or part of an expression.
 *
 * It uses the indentation instead of a syntax tree, which is unreliable for incomplete text.
 */

import { ITEM } from "./schemaLookup.ts";

export interface Place {
  readonly kind: "key" | "value" | "expression";
  /** The path to the mapping (for a key) or to the value. */
  readonly path: readonly string[];
  /** The typed part, and its position. */
  readonly word: string;
  readonly from: number;
  /** The other keys of the same mapping. */
  readonly present: ReadonlySet<string>;
  /** Whether it is in a flow mapping (`{…}`), which is on one line. */
  readonly flow: boolean;
}

const LEAD = /^\s*((?:- +)*)/;
const KEY = /^\s*(["']?)([\w$-]+)\1\s*:(?:\s+|$)/;
const WORD = /[\w$-]*$/;
const EXPRESSION_WORD = /[\w.]*$/;
const IN_EXPRESSION = /\$\{[^}]*$/;
const COMMENT = /(^|\s)#/;

export function placeAt(text: string, at: number): Place | null {
  const start = text.lastIndexOf("\n", at - 1) + 1;
  const line = text.slice(start, at);
  if (COMMENT.test(line)) return null;
  const above = text.slice(0, start).split("\n").slice(0, -1);
  const [lead, dashes] = LEAD.exec(line) as unknown as [string, string];
  const rest = line.slice(lead.length);
  const path = [
    ...ownersOf(above, indentOf(line), isItem(line)),
    ...dashes
      .split("-")
      .slice(1)
      .map(() => ITEM),
  ];
  const key = KEY.exec(rest);
  if (key !== null) {
    const [whole, , name] = key as unknown as [string, string, string];
    if (name === "when" || IN_EXPRESSION.test(line)) return expression([...path, name], line, at);
    return inValue([...path, name], rest.slice(whole.length), at);
  }
  if (IN_EXPRESSION.test(line)) return expression(path, line, at);
  if (dashes !== "" || /^[[{]/.test(rest)) return inValue(path, rest, at);
  const word = WORD.exec(rest)![0];
  if (word !== rest) return null;
  const below = text.slice(at).split("\n").slice(1);
  return { kind: "key", path, word, from: at - word.length, present: siblings(above, below, line), flow: false };
}

function expression(path: readonly string[], line: string, at: number): Place {
  const word = EXPRESSION_WORD.exec(line)![0];
  return { kind: "expression", path, word, from: at - word.length, present: new Set(), flow: false };
}

/** The position after a key: a value, or an open bracket. */
function inValue(path: readonly string[], value: string, at: number): Place | null {
  const open: { path: readonly string[]; mapping: boolean; present: Set<string> }[] = [];
  let part = "";
  let key: string | null = null;
  const owner = () => open.at(-1)?.path ?? path;
  const inside = () => [
    ...owner(),
    ...(open.at(-1)?.mapping === true ? (key === null ? [] : [key]) : open.length > 0 ? [ITEM] : []),
  ];
  let quote: string | null = null;
  for (const character of value) {
    if (quote !== null) {
      if (character === quote) quote = null;
      else part += character;
    } else if ((character === '"' || character === "'") && part.trim() === "") {
      quote = character;
    } else if (character === "{" || character === "[") {
      open.push({ path: inside(), mapping: character === "{", present: new Set() });
      [part, key] = ["", null];
    } else if (character === "}" || character === "]") {
      open.pop();
      [part, key] = ["", null];
    } else if (character === "," && open.length > 0) {
      [part, key] = ["", null];
    } else if (character === ":" && open.at(-1)?.mapping === true && key === null) {
      key = part.trim();
      open.at(-1)!.present.add(key);
      part = "";
    } else {
      part += character;
    }
  }
  const word = part.trimStart();
  const last = open.at(-1);
  const from = at - word.length;
  if (last?.mapping === true && key === null) {
    return { kind: "key", path: last.path, word, from, present: last.present, flow: true };
  }
  return { kind: "value", path: inside(), word, from, present: new Set(), flow: open.length > 0 };
}

/** The keys of the enclosing mappings. */
function ownersOf(above: readonly string[], indent: number, item: boolean): readonly string[] {
  const path: string[] = [];
  let limit = indent;
  let inItem = item;
  for (let number = above.length - 1; number >= 0 && (limit > 0 || inItem); number--) {
    const line = above[number]!;
    if (/^\s*(#|$)/.test(line)) continue;
    const own = indentOf(line);
    const dashes = LEAD.exec(line)![1]!;
    const key = KEY.exec(line.slice(own + dashes.length))?.[2];
    const keyIndent = own + dashes.length;
    // A list may have the same indentation as its key.
    const holds = keyIndent < limit || (inItem && dashes === "" && keyIndent === limit);
    if (key !== undefined && holds) {
      path.unshift(key);
      limit = keyIndent;
      inItem = false;
    }
    if (dashes !== "" && own < limit) {
      path.unshift(ITEM);
      limit = own;
      inItem = true;
    }
  }
  return path;
}

/** The keys with the same indentation above and below, within the mapping. */
function siblings(above: readonly string[], below: readonly string[], line: string): ReadonlySet<string> {
  const indent = indentOf(line);
  const found = new Set<string>();
  for (const lines of [above.toReversed(), below]) {
    for (const other of lines) {
      if (/^\s*(#|$)/.test(other)) continue;
      if (indentOf(other) < indent) break;
      const key = KEY.exec(other)?.[2];
      if (indentOf(other) === indent && key !== undefined) found.add(key);
    }
  }
  return found;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

function isItem(line: string): boolean {
  return /^\s*- /.test(line) || /^\s*-$/.test(line);
}
