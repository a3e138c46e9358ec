/** Generates an example run input from a JSON Schema. */

type Schema = Readonly<Record<string, unknown>>;

/** A value that shows the shape of a schema. */
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
