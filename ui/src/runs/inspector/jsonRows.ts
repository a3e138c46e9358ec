/**
 * Converts a JSON value to tree rows, only for expanded nodes, so that the cost depends on the visible part.
 *
 * A path is the list of keys that lead to a value. Long lists are divided into ranges. A range is a row, but not part of
 * a path.
 */

import { isExact } from "../../api/exactJson.ts";

export type Json = unknown;
export type Place = readonly (string | number)[];

export interface Row {
  /** Unlike a path, different for a range and for its first item. */
  readonly key: string;
  readonly place: Place;
  readonly depth: number;
  readonly name: string;
  readonly value: Json;
  /** The number of children; null if it cannot be expanded. */
  readonly size: number | null;
  readonly stretch: { readonly from: number; readonly to: number } | null;
}

export const STRETCH = 200;
const MOST_FOUND = 1_000;
const MOST_LOOKED_AT = 2_000_000;

export function keyOf(place: Place): string {
  return JSON.stringify(place);
}

function stretchKey(place: Place, from: number): string {
  return `${keyOf(place)}:${from}`;
}

export function rowsOf(root: Json, name: string, open: ReadonlySet<string>): readonly Row[] {
  const rows: Row[] = [];
  add(rows, root, [], name, 0, open);
  return rows;
}

function add(rows: Row[], value: Json, place: Place, name: string, depth: number, open: ReadonlySet<string>): void {
  const size = sizeOfValue(value);
  const key = keyOf(place);
  rows.push({ key, place, depth, name, value, size, stretch: null });
  if (size === null || !open.has(key)) return;
  const names = Array.isArray(value) ? null : Object.keys(value as object);
  if (size <= STRETCH) {
    addRange(rows, value, names, place, 0, size, depth + 1, open);
    return;
  }
  for (let from = 0; from < size; from += STRETCH) {
    const to = Math.min(size, from + STRETCH);
    const stretch = stretchKey(place, from);
    rows.push({
      key: stretch,
      place,
      depth: depth + 1,
      name: `${from} … ${to - 1}`,
      value,
      size: to - from,
      stretch: { from, to },
    });
    if (open.has(stretch)) addRange(rows, value, names, place, from, to, depth + 2, open);
  }
}

function addRange(
  rows: Row[],
  value: Json,
  names: readonly string[] | null,
  place: Place,
  from: number,
  to: number,
  depth: number,
  open: ReadonlySet<string>,
): void {
  for (let index = from; index < to; index++) {
    const key = names === null ? index : names[index]!;
    add(rows, (value as Record<string | number, Json>)[key], [...place, key], String(key), depth, open);
  }
}

/** Whether the value is a list or an object. */
export function isHolder(value: Json): value is object {
  return typeof value === "object" && value !== null && !isExact(value);
}

/** The number of items or fields; null if there are none to show. */
export function sizeOfValue(value: Json): number | null {
  if (!isHolder(value)) return null;
  const size = Array.isArray(value) ? value.length : Object.keys(value).length;
  return size === 0 ? null : size;
}

/** The rows that must be expanded to show the path. */
export function opening(root: Json, place: Place): readonly string[] {
  const keys: string[] = [];
  let value = root;
  for (let depth = 0; depth < place.length; depth++) {
    const parent = place.slice(0, depth);
    keys.push(keyOf(parent));
    const size = sizeOfValue(value) ?? 0;
    const name = place[depth]!;
    if (size > STRETCH) {
      const index = typeof name === "number" ? name : Object.keys(value as object).indexOf(name);
      keys.push(stretchKey(parent, index - (index % STRETCH)));
    }
    value = (value as Record<string | number, Json>)[name];
  }
  return keys;
}

/** The paths whose key or value contains the text, ignoring case, in the order of the tree. */
export function find(root: Json, text: string): { readonly places: readonly Place[]; readonly isAll: boolean } {
  const wanted = text.toLowerCase();
  const places: Place[] = [];
  let left = MOST_LOOKED_AT;
  const look = (value: Json, place: Place): boolean => {
    if (--left < 0 || places.length >= MOST_FOUND) return false;
    const name = place.length === 0 ? "" : String(place[place.length - 1]);
    const said = isHolder(value) ? "" : String(value);
    if (
      (name !== "" && Number.isNaN(Number(name)) && name.toLowerCase().includes(wanted)) ||
      said.toLowerCase().includes(wanted)
    ) {
      places.push(place);
    }
    if (!isHolder(value)) return true;
    if (Array.isArray(value)) return value.every((item, index) => look(item, [...place, index]));
    return Object.entries(value).every(([key, item]) => look(item, [...place, key]));
  };
  return { isAll: look(root, []), places };
}

const PLAIN = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The workflow expression that refers to the path. */
export function expressionOf(root: string, place: Place): string {
  return place.reduce<string>((path, key) => {
    if (typeof key === "number") return `${path}[${key}]`;
    return PLAIN.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
  }, root);
}
