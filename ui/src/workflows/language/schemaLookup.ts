/**
 * Looks up a position of a definition in the published JSON Schema of the workflow language.
 *
 * It supports what that schema uses: references, alternatives, and conditions on the present keys.
 */

import { scalar } from "./scalar.ts";

export type Schema = Readonly<Record<string, unknown>>;

/** A list entry in a path; everything else is a key. */
export const ITEM = "[]";

export interface KeyShape {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  /** Whether the value starts on a new line. */
  readonly nested: boolean;
}

export interface ValueShape {
  readonly text: string;
  readonly detail: string;
}

/** The keys that can be added to the mapping at a path. */
export function keysAt(schema: Schema, path: readonly string[], present: ReadonlySet<string>): readonly KeyShape[] {
  const keys = new Map<string, KeyShape>();
  for (const shape of shapesAt(schema, path)) {
    const required = new Set(listOf(shape["required"]));
    const forbidden = forbiddenBy(shape, present);
    for (const [name, part] of Object.entries(mappingOf(shape["properties"]))) {
      if (present.has(name) || forbidden.has(name) || keys.has(name)) continue;
      const parts = alternativesOf(schema, mappingOf(part));
      keys.set(name, {
        name,
        description: descriptionOf(mappingOf(part), parts),
        required: required.has(name),
        nested: parts.length > 0 && parts.every((each) => each["type"] === "object"),
      });
    }
  }
  return [...keys.values()];
}

/** The values to suggest at a path. */
export function valuesAt(schema: Schema, path: readonly string[]): readonly ValueShape[] {
  const values = new Map<string, ValueShape>();
  const add = (value: unknown, detail: string) => {
    const text = typeof value === "string" ? written(value) : JSON.stringify(value);
    if (!values.has(text)) values.set(text, { text, detail });
  };
  for (const shape of shapesAt(schema, path)) {
    const usual = shape["default"];
    for (const choice of listOf(shape["enum"])) add(choice, choice === usual ? "default" : "");
    if (shape["type"] === "boolean") for (const choice of [true, false]) add(choice, choice === usual ? "default" : "");
    for (const example of listOf(shape["examples"])) add(example, "example");
  }
  return [...values.values()];
}

export function descriptionAt(schema: Schema, path: readonly string[]): string {
  const owner = shapesAt(schema, path.slice(0, -1));
  const last = path.at(-1) ?? "";
  for (const shape of owner) {
    const part = mappingOf(shape["properties"])[last];
    if (part !== undefined) return descriptionOf(mappingOf(part), alternativesOf(schema, mappingOf(part)));
  }
  return "";
}

function shapesAt(schema: Schema, path: readonly string[]): readonly Schema[] {
  let shapes = alternativesOf(schema, schema);
  for (const part of path) {
    shapes = shapes.flatMap((shape) => {
      const inside =
        part === ITEM ? shape["items"] : (mappingOf(shape["properties"])[part] ?? shape["additionalProperties"]);
      return typeof inside === "object" ? alternativesOf(schema, mappingOf(inside)) : [];
    });
  }
  return shapes;
}

/** Resolves the reference of a shape and flattens its alternatives. */
function alternativesOf(schema: Schema, shape: Schema, depth = 0): readonly Schema[] {
  if (depth > 8) return [];
  const reference = shape["$ref"];
  if (typeof reference === "string") {
    const name = reference.replace("#/$defs/", "");
    const found = mappingOf(mappingOf(schema["$defs"])[name]);
    const { $ref: _, ...own } = shape;
    return alternativesOf(schema, { ...found, ...own }, depth + 1);
  }
  const several = [...listOf(shape["oneOf"]), ...listOf(shape["anyOf"])];
  const { oneOf: _, anyOf: __, ...own } = shape;
  if (several.length === 0) return [shape];
  return several.flatMap((one) => alternativesOf(schema, { ...own, ...mappingOf(one) }, depth + 1));
}

/** The keys that the present ones exclude: a step with a workflow has no agent. */
function forbiddenBy(shape: Schema, present: ReadonlySet<string>): ReadonlySet<string> {
  if (shape["if"] === undefined) return new Set();
  const holds = listOf(mappingOf(shape["if"])["required"]).every((key) => present.has(String(key)));
  const rules = mappingOf(mappingOf(holds ? shape["then"] : shape["else"])["properties"]);
  return new Set(Object.entries(rules).flatMap(([key, rule]) => (rule === false || isEmpty(rule) ? [key] : [])));
}

function isEmpty(rule: unknown): boolean {
  return mappingOf(rule)["const"] === "";
}

function descriptionOf(shape: Schema, parts: readonly Schema[]): string {
  const found = [shape, ...parts].map((each) => each["description"]).find((each) => typeof each === "string");
  return found ?? "";
}

/** Durations and expressions need no quotes, although they do not look like names. */
function written(text: string): string {
  return /^[\w][\w ./<>=()-]*$/.test(text) ? text : scalar(text);
}

function mappingOf(value: unknown): Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Schema) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}
