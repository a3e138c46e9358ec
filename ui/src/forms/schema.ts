/**
 * Converts a JSON Schema to form fields.
 *
 * Pure. Anything without a matching field (unions, free-form objects, unknown keywords) is entered as JSON. The server
 * validates the result.
 */

import { asNumber, type ExactNumber } from "../api/exactJson.ts";
import type { Finding } from "../api/problem.ts";

export type Json = null | boolean | number | ExactNumber | string | readonly Json[] | { readonly [name: string]: Json };
export type Schema = Readonly<Record<string, unknown>>;
export type Path = readonly (string | number)[];

export interface Property {
  readonly name: string;
  readonly schema: Schema;
  readonly required: boolean;
}

export interface Choice {
  readonly value: Json;
  readonly title: string;
}

export type Field =
  | { readonly kind: "text"; readonly format: string | null }
  | { readonly kind: "number"; readonly whole: boolean }
  | { readonly kind: "boolean" }
  | { readonly kind: "choice"; readonly options: readonly Choice[] }
  | { readonly kind: "file" }
  | { readonly kind: "list"; readonly items: Schema; readonly least: number }
  | { readonly kind: "group"; readonly properties: readonly Property[] }
  | { readonly kind: "json" };

// A schema may refer to itself, so the depth is limited.
const DEEPEST = 6;
const COMBINED = ["oneOf", "anyOf", "allOf", "not", "if", "patternProperties"] as const;

export function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Resolves a `$ref` within the same document. */
export function resolved(schema: Schema, root: Schema): Schema {
  let found = schema;
  for (let hops = 0; hops < DEEPEST && typeof found["$ref"] === "string"; hops++) {
    const target = pointed(root, found["$ref"]);
    if (target === null) return found;
    const { $ref: _, ...own } = found;
    found = { ...target, ...own };
  }
  return found;
}

function pointed(root: Schema, reference: string): Schema | null {
  if (!reference.startsWith("#")) return null;
  let found: unknown = root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    if (!isSchema(found)) return null;
    found = found[decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")];
  }
  return isSchema(found) ? found : null;
}

export function fieldOf(schema: Schema, depth: number): Field {
  const options = choicesOf(schema);
  if (options !== null) return { kind: "choice", options };
  if (schema["format"] === "file") return { kind: "file" };
  if ("$ref" in schema || depth > DEEPEST || COMBINED.some((name) => name in schema)) return { kind: "json" };
  switch (typeOf(schema)) {
    case "string":
      return { kind: "text", format: typeof schema["format"] === "string" ? schema["format"] : null };
    case "integer":
      return { kind: "number", whole: true };
    case "number":
      return { kind: "number", whole: false };
    case "boolean":
      return { kind: "boolean" };
    case "array":
      if (!isSchema(schema["items"])) return { kind: "json" };
      return { kind: "list", items: schema["items"], least: asNumber(schema["minItems"]) ?? 0 };
    case "object":
      return groupOf(schema);
    default:
      return { kind: "json" };
  }
}

/** An enum, one constant, or constants with titles (`oneOf: [{const, title}]`). */
function choicesOf(schema: Schema): readonly Choice[] | null {
  if (Array.isArray(schema["enum"])) return schema["enum"].map((value: Json) => ({ value, title: choiceText(value) }));
  if ("const" in schema) return [{ value: schema["const"] as Json, title: choiceText(schema["const"] as Json) }];
  for (const key of ["oneOf", "anyOf"] as const) {
    const options = schema[key];
    if (!Array.isArray(options) || options.length === 0) continue;
    if (!options.every((each) => isSchema(each) && "const" in each)) continue;
    return (options as Schema[]).map((each) => ({
      value: each["const"] as Json,
      title:
        typeof each["title"] === "string" && each["title"] !== "" ? each["title"] : choiceText(each["const"] as Json),
    }));
  }
  return null;
}

function choiceText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function groupOf(schema: Schema): Field {
  const given = schema["properties"];
  if (!isSchema(given) || Object.keys(given).length === 0) return { kind: "json" };
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const properties = Object.entries(given).map(([name, own]) => ({
    name,
    schema: isSchema(own) ? own : {},
    required: required.includes(name),
  }));
  return { kind: "group", properties };
}

/** The only type besides null. */
function typeOf(schema: Schema): string | null {
  const type = schema["type"];
  if (typeof type === "string") return type;
  if (!Array.isArray(type)) return isSchema(schema["properties"]) ? "object" : null;
  const others = type.filter((name) => name !== "null");
  return others.length === 1 && typeof others[0] === "string" ? others[0] : null;
}

/** The initial value of a field; undefined if it has none and is left out. */
export function beginning(given: Schema, root: Schema, required: boolean, depth = 0): Json | undefined {
  const schema = resolved(given, root);
  if ("default" in schema) return schema["default"] as Json;
  if ("const" in schema) return required ? (schema["const"] as Json) : undefined;
  const field = fieldOf(schema, depth);
  switch (field.kind) {
    case "boolean":
      return required ? false : undefined;
    case "list":
      // An empty list would be a value, which the user has not entered.
      if (!required || (field.least === 0 && depth > 0)) return undefined;
      return Array.from({ length: Math.min(field.least, 10) }, () => blank(field.items, root, depth + 1));
    case "group": {
      const filled = field.properties
        .map(({ name, schema: own, required: needed }) => [name, beginning(own, root, needed, depth + 1)] as const)
        .filter((entry): entry is readonly [string, Json] => entry[1] !== undefined);
      return required || filled.length > 0 ? Object.fromEntries(filled) : undefined;
    }
    default:
      return undefined;
  }
}

/** The initial value of a new list entry, which cannot be left out. */
export function blank(given: Schema, root: Schema, depth = 0): Json {
  const begun = beginning(given, root, true, depth);
  if (begun !== undefined) return begun;
  const { kind } = fieldOf(resolved(given, root), depth);
  return kind === "text" ? "" : kind === "list" ? [] : null;
}

/** `input.names[0]['odd name']`, the notation of the server's error paths. */
export function pathText(path: Path): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part}]`;
    if (!/^[A-Za-z_$][A-Za-z0-9_-]*$/.test(part)) return `${text}['${part}']`;
    return text === "" ? part : `${text}.${part}`;
  }, "");
}

function parsedPath(text: string): Path {
  const parts: (string | number)[] = [];
  for (const found of text.matchAll(/\[(\d+)\]|\['(.*?)'\]|\.?([A-Za-z_$][A-Za-z0-9_-]*)/g)) {
    parts.push(found[1] !== undefined ? Number(found[1]) : (found[2] ?? found[3] ?? ""));
  }
  return parts;
}

/** Assigns each message to the field that can correct it: the nearest field on its path. */
export function placed(findings: readonly Finding[], schema: Schema): ReadonlyMap<string, readonly string[]> {
  const messages = new Map<string, string[]>();
  for (const { path, message, missing } of findings) {
    const wanted = typeof missing === "string" ? [...parsedPath(path), missing] : parsedPath(path);
    const place = nearest(schema, wanted);
    const isThere = pathText(place) === pathText(wanted);
    const told =
      typeof missing === "string" && isThere ? "This field is required." : isThere ? message : `${path}: ${message}`;
    const key = pathText(place);
    messages.set(key, [...(messages.get(key) ?? []), told]);
  }
  return messages;
}

/** The missing required fields. The server validates the rest. */
export function missing(root: Schema, value: Json | undefined, name: string): readonly Finding[] {
  return gaps(root, root, value, [name]);
}

function gaps(given: Schema, root: Schema, value: Json | undefined, path: Path): readonly Finding[] {
  const schema = resolved(given, root);
  const field = fieldOf(schema, path.length - 1);
  if (field.kind === "list" && Array.isArray(value)) {
    return value.flatMap((entry: Json, index) => gaps(field.items, root, entry, [...path, index]));
  }
  if (field.kind !== "group" || typeof value !== "object" || value === null) return [];
  const present = value as { readonly [name: string]: Json };
  return field.properties.flatMap(({ name, schema: own, required }) => {
    const inner = present[name];
    if (inner !== undefined) return gaps(own, root, inner, [...path, name]);
    return required ? [{ path: pathText([...path, name]), message: "This field is required." }] : [];
  });
}

function nearest(root: Schema, path: Path): Path {
  const place: (string | number)[] = path.slice(0, 1);
  let schema = resolved(root, root);
  for (const part of path.slice(1)) {
    const field = fieldOf(schema, place.length - 1);
    let inner: Schema | undefined;
    if (field.kind === "group") inner = field.properties.find(({ name }) => name === part)?.schema;
    if (field.kind === "list" && typeof part === "number") inner = field.items;
    if (inner === undefined) break;
    schema = resolved(inner, root);
    place.push(part);
  }
  return place;
}
