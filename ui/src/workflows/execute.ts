/** The call that starts a run, as one would type it. */

import { key } from "../api/key.ts";
import { literal } from "../wire/quoting.ts";

type Schema = Readonly<Record<string, unknown>>;

export function executeCurl(workflow: string, version: number | null, input: unknown): string {
  const query = version === null ? "" : `?version=${version}`;
  const url = `${window.location.origin}/api/v1/workflows/${encodeURIComponent(workflow)}/execute${query}`;
  return [
    `curl -X POST ${literal(url)}`,
    // The key itself stays out of what is copied around.
    ...(key.read() === null ? [] : ['-H "Authorization: Bearer $TRUNKLINE_API_KEY"']),
    "-H 'Content-Type: application/json'",
    `-d ${literal(JSON.stringify(input))}`,
  ].join(" \\\n  ");
}

/** A value that a schema might take: enough to show its form. */
export function exampleOf(schema: unknown, depth = 0): unknown {
  if (typeof schema !== "object" || schema === null || depth > 6) return {};
  const { default: given, examples, const: only, enum: choices, anyOf, oneOf } = schema as Schema;
  if (given !== undefined) return given;
  if (only !== undefined) return only;
  for (const several of [examples, choices]) {
    if (Array.isArray(several) && several.length > 0) return several[0] as unknown;
  }
  for (const several of [anyOf, oneOf]) {
    if (Array.isArray(several) && several.length > 0) return exampleOf(several[0], depth + 1);
  }
  return ofType(schema as Schema, depth);
}

function ofType(schema: Schema, depth: number): unknown {
  const type = Array.isArray(schema["type"]) ? (schema["type"][0] as unknown) : schema["type"];
  switch (type) {
    case "string":
      return "…";
    case "integer":
    case "number":
      return typeof schema["minimum"] === "number" ? schema["minimum"] : 1;
    case "boolean":
      return true;
    case "null":
      return null;
    case "array":
      return schema["items"] === undefined ? [] : [exampleOf(schema["items"], depth + 1)];
    default:
      return Object.fromEntries(
        Object.entries((schema["properties"] ?? {}) as Schema).map(([name, part]) => [
          name,
          exampleOf(part, depth + 1),
        ]),
      );
  }
}
