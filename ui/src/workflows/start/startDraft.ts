/**
 * The entries of the start form, kept in the session storage of this tab until the run is started.
 *
 * Values of fields that the schema marks as secret (`format: password`, `writeOnly`) are never stored.
 */

import { jsonProblem, parsed, written } from "../../forms/JsonEditor.tsx";
import { fieldOf, isSchema, resolved, type Json, type Schema } from "../../forms/schema.ts";

export interface StartDraft {
  readonly mode: "form" | "json";
  /** The input as JSON, or the text of the JSON editor, which may be incomplete. */
  readonly text: string;
}

const PREFIX = "trunkline.start.";
const DEEPEST = 20;

/** Entries for another version are ignored, because its schema may differ. */
export function readStartDraft(workflow: string, version: number): StartDraft | null {
  try {
    const kept = JSON.parse(sessionStorage.getItem(PREFIX + workflow) ?? "null") as
      (Partial<StartDraft> & { version?: number }) | null;
    if (kept === null || kept.version !== version || typeof kept.text !== "string") return null;
    if (kept.mode === "json") return { mode: "json", text: kept.text };
    return jsonProblem(kept.text) === null ? { mode: "form", text: kept.text } : null;
  } catch {
    return null;
  }
}

export function saveStartDraft(
  workflow: string,
  version: number,
  schema: Schema | null,
  { mode, text }: StartDraft,
): void {
  const safe = schema !== null && asksForSecrets(schema) ? withoutSecrets(text, schema) : text;
  if (safe === null) return;
  try {
    sessionStorage.setItem(PREFIX + workflow, JSON.stringify({ version, mode, text: safe }));
  } catch {
    // The form also works without storage.
    return;
  }
}

export function deleteStartDraft(workflow: string): void {
  try {
    sessionStorage.removeItem(PREFIX + workflow);
  } catch {
    return;
  }
}

export function asksForSecrets(schema: Schema | null): boolean {
  return schema !== null && mentionsSecret(schema, schema, 0);
}

/** Null if the text cannot be parsed, so its secrets cannot be found. */
function withoutSecrets(text: string, schema: Schema): string | null {
  if (jsonProblem(text) !== null) return null;
  return written(cleared(parsed(text), schema, schema, 0));
}

function cleared(value: Json | undefined, schema: Schema, root: Schema, depth: number): Json | undefined {
  const own = resolved(schema, root);
  if (value === undefined || isSecret(own)) return undefined;
  const field = fieldOf(own, 0);
  if (field.kind === "group" && isObject(value)) {
    const schemas = new Map(field.properties.map((property) => [property.name, property.schema]));
    const entries = Object.entries(value).map(([name, each]) => [
      name,
      cleared(each, schemas.get(name) ?? {}, root, depth + 1),
    ]);
    return Object.fromEntries(entries.filter(([, each]) => each !== undefined)) as Json;
  }
  if (field.kind === "list" && Array.isArray(value)) {
    return value.map((each: Json) => cleared(each, field.items, root, depth + 1) ?? null);
  }
  // A value that is entered as JSON is kept as a whole or not at all.
  return mentionsSecret(own, root, depth) ? undefined : value;
}

function isSecret(schema: Schema): boolean {
  return schema["format"] === "password" || schema["writeOnly"] === true;
}

function isObject(value: Json): value is { readonly [name: string]: Json } {
  return isSchema(value) && Object.getPrototypeOf(value) === Object.prototype;
}

/** Whether any part of the schema is marked as secret. Schemas that are nested too deeply count as secret. */
function mentionsSecret(schema: unknown, root: Schema, depth: number): boolean {
  if (depth > DEEPEST) return true;
  if (Array.isArray(schema)) return schema.some((each) => mentionsSecret(each, root, depth + 1));
  if (!isSchema(schema)) return false;
  const own = resolved(schema, root);
  return isSecret(own) || Object.values(own).some((each) => mentionsSecret(each, root, depth + 1));
}
