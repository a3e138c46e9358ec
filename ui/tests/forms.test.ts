import { describe, expect, test } from "vitest";

import { beginning, blank, fieldOf, isSchema, missing, pathText, placed, resolved } from "../src/forms/schema.ts";
import { invalidValues } from "../src/forms/validate.ts";
import { exampleOf } from "../src/workflows/exampleInput.ts";

const ORDER = {
  type: "object",
  required: ["customer", "lines"],
  properties: {
    customer: { $ref: "#/$defs/customer" },
    lines: {
      type: "array",
      minItems: 1,
      items: { type: "object", required: ["sku"], properties: { sku: { type: "string" }, count: { default: 1 } } },
    },
    note: { type: ["string", "null"] },
    gift: { type: "boolean" },
  },
  $defs: { customer: { type: "object", required: ["name"], properties: { name: { type: "string" } } } },
};

describe("a field", () => {
  test.each([
    [
      { type: "string", format: "date" },
      { kind: "text", format: "date" },
    ],
    [{ type: "integer" }, { kind: "number", whole: true }],
    [{ type: ["number", "null"] }, { kind: "number", whole: false }],
    [
      { enum: ["a", 1] },
      {
        kind: "choice",
        options: [
          { value: "a", title: "a" },
          { value: 1, title: "1" },
        ],
      },
    ],
    [{ const: "a" }, { kind: "choice", options: [{ value: "a", title: "a" }] }],
    [
      { oneOf: [{ const: 1, title: "Slow" }, { const: 2 }] },
      {
        kind: "choice",
        options: [
          { value: 1, title: "Slow" },
          { value: 2, title: "2" },
        ],
      },
    ],
    [{ oneOf: [{ const: 1 }, { type: "string" }] }, { kind: "json" }],
    [{ type: "object", format: "file" }, { kind: "file" }],
    [{ type: "array" }, { kind: "json" }],
    [{ type: "object" }, { kind: "json" }],
    [{ oneOf: [{ type: "string" }] }, { kind: "json" }],
    [{}, { kind: "json" }],
  ])("of %j is %j", (schema, field) => {
    expect(fieldOf(schema, 0)).toEqual(field);
  });

  test("of a schema that refers to itself ends", () => {
    const root = { properties: { child: { $ref: "#" } } };
    expect(resolved({ $ref: "#/properties/child" }, root)).toHaveProperty("properties");
    expect(fieldOf({ type: "object", properties: { a: {} } }, 7)).toEqual({ kind: "json" });
    expect(isSchema(beginning(root, root, true))).toBe(true);
  });

  test("keeps a reference that leads nowhere", () => {
    expect(resolved({ $ref: "#/$defs/nope" }, ORDER)).toEqual({ $ref: "#/$defs/nope" });
    expect(resolved({ $ref: "http://elsewhere.test/" }, ORDER)).toEqual({ $ref: "http://elsewhere.test/" });
  });
});

describe("a form", () => {
  test("starts with what is required and what has a default", () => {
    expect(beginning(ORDER, ORDER, true)).toEqual({ customer: {}, lines: [{ count: 1 }] });
    expect(blank(ORDER.properties.lines.items, ORDER)).toEqual({ count: 1 });
    expect(blank({ type: "string" }, ORDER)).toBe("");
  });

  test("names what is missing", () => {
    const found = missing(ORDER, { customer: {}, lines: [{ sku: "x" }, {}] }, "input");
    expect(found.map(({ path }) => path)).toEqual(["input.customer.name", "input.lines[1].sku"]);
  });

  test("shows the server's findings at the nearest field", () => {
    const messages = placed(
      [
        { path: "input.lines[0].sku", message: "too short" },
        { path: "input.note.deeper", message: "odd" },
        { path: "input.customer", message: "incomplete", missing: "name" },
      ],
      ORDER,
    );
    expect(messages.get("input.lines[0].sku")).toEqual(["too short"]);
    expect(messages.get("input.note")).toEqual(["input.note.deeper: odd"]);
    expect([...messages.keys()]).toContain("input.customer.name");
  });

  test("writes paths as the server does", () => {
    expect(pathText(["input", "names", 0, "odd name"])).toBe("input.names[0]['odd name']");
  });
});

test("an example of an input has the form that the schema asks for", () => {
  expect(exampleOf(ORDER.properties.lines)).toEqual([{ sku: "…", count: 1 }]);
  expect(exampleOf({ type: "integer", minimum: 5 })).toBe(5);
  expect(exampleOf({ anyOf: [{ const: "a" }, { type: "null" }] })).toBe("a");
});

describe("a value", () => {
  const form = {
    type: "object",
    properties: {
      amount: { type: "number", maximum: 5 },
      count: { type: "integer" },
      day: { type: "string", format: "date" },
      lines: {
        type: "array",
        maxItems: 1,
        items: { type: "object", properties: { what: { type: "string", minLength: 2 } } },
      },
    },
  };
  test.each([
    [{ amount: 5, count: 1, day: "2026-02-28", lines: [{ what: "ab" }] }, []],
    [{ amount: 7 }, ["data.amount"]],
    [{ count: 1.5 }, ["data.count"]],
    [{ day: "2026-02-30" }, ["data.day"]],
    [{ day: "tomorrow" }, ["data.day"]],
    [{ lines: [{ what: "a" }, {}] }, ["data.lines", "data.lines[0].what"]],
  ])("%j is wrong at %j", (value, places) => {
    expect(invalidValues(form, value, "data").map(({ path }) => path)).toEqual(places);
  });
});
