import { describe, expect, test } from "vitest";

import { asNumber, ExactNumber, isExact, KEEPS_ALL_DIGITS, parseResponse, parseExact } from "../src/api/exactJson.ts";
import { formatted, formattedJson } from "../src/code/formatJson.ts";
import { find, keyOf, opening, rowsOf, sizeOfValue } from "../src/runs/inspector/jsonRows.ts";

describe("JSON that a person wrote", () => {
  test("is read with JSON.rawJSON, as in a browser", () => {
    expect(KEEPS_ALL_DIGITS).toBe(true);
  });

  test.each([
    "1.0",
    "-0.0",
    "1e2",
    "12345678901234567890",
    "0.1000000000000000055511151231257827",
    "1E+400",
    "0.0000001",
    '{"a":[1.50,{"b":10.0}],"c":"1.0"}',
  ])("keeps %s as it was written", (text) => {
    expect(JSON.stringify(parseExact(text))).toBe(text);
  });

  test("has ordinary numbers where they are written in the ordinary way", () => {
    expect(parseExact('{"a": 1, "b": -2.5}')).toEqual({ a: 1, b: -2.5 });
  });

  test.each(["{", '{"a":}', "1.", "nope", "[1,]", ""])("that is invalid is refused: %s", (text) => {
    expect(() => parseExact(text)).toThrow(SyntaxError);
  });

  test("is read like JSON.parse in every other respect", () => {
    const text = ' { "é\\n\\"" : [ true , false , null , { } , [ ] , "\\u00e9\\\\" ] , "__proto__" : { "x" : 1.0 } } ';
    expect(JSON.stringify(parseExact(text))).toBe('{"é\\n\\"":[true,false,null,{},[],"é\\\\"],"__proto__":{"x":1.0}}');
    expect(Object.getPrototypeOf(parseExact(text))).toBe(Object.prototype);
  });
});

describe("an answer of the API", () => {
  test("has ordinary numbers, except in the values of agents and runs", () => {
    const answer = parseResponse('{"took": 1.0, "input": {"price": 1.0}}') as {
      took: unknown;
      input: { price: unknown };
    };
    expect(answer.took).toBe(1);
    expect(isExact(answer.input.price)).toBe(true);
    expect(String(answer.input.price)).toBe("1.0");
  });

  test("keeps a number that a double cannot hold", () => {
    const { id } = parseResponse('{"id": 9007199254740993}') as { id: ExactNumber };
    expect([isExact(id), id.isLong, String(id)]).toEqual([true, true, "9007199254740993"]);
  });
});

test("an exact number can be calculated with", () => {
  expect(asNumber(new ExactNumber("1.50"))).toBe(1.5);
  expect(asNumber("1.50")).toBeNull();
  expect(new ExactNumber("1.0").isLong).toBe(false);
});

describe("formatted JSON", () => {
  test("has one value to a line, as it was written", () => {
    expect(formattedJson('{"a":[1.0,"x, y"],"b":{},"c":[]}')).toBe(
      '{\n  "a": [\n    1.0,\n    "x, y"\n  ],\n  "b": {},\n  "c": []\n}',
    );
  });

  test("leaves other text alone", () => {
    expect(formattedJson("name: x")).toBeNull();
    expect(formatted("name: x\n")).toBe("name: x\n");
    expect(formatted("{not: json}")).toBe("{not: json}");
  });

  test("reads quotation marks and backslashes inside of texts", () => {
    expect(formattedJson('["\\"]", "\\\\"]')).toBe('[\n  "\\"]",\n  "\\\\"\n]');
  });

  test("does not indent without end", () => {
    const deep = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;
    expect(formattedJson(deep)!.length).toBeLessThan(5_000 * 2 * 120);
  });
});

describe("the rows of a JSON tree", () => {
  const value = { list: Array.from({ length: 450 }, (_, index) => ({ id: index })), text: "needle" };

  test("show only what is open", () => {
    expect(rowsOf(value, "output", new Set()).map(({ name }) => name)).toEqual(["output"]);
    expect(rowsOf(value, "output", new Set([keyOf([])])).map(({ name }) => name)).toEqual(["output", "list", "text"]);
  });

  test("group a long list into ranges", () => {
    const rows = rowsOf(value, "output", new Set([keyOf([]), keyOf(["list"])]));
    expect(rows.map(({ name }) => name)).toEqual(["output", "list", "0 … 199", "200 … 399", "400 … 449", "text"]);
  });

  test("of a place are there once what leads to it is open", () => {
    const place = ["list", 321, "id"];
    const rows = rowsOf(value, "output", new Set(opening(value, place)));
    expect(rows.find(({ key }) => key === keyOf(place))).toMatchObject({ name: "id", value: 321, depth: 4 });
  });

  test("have a size only if there is something to open", () => {
    expect([sizeOfValue([]), sizeOfValue({}), sizeOfValue("x"), sizeOfValue([1]), sizeOfValue(null)]).toEqual([
      null,
      null,
      null,
      1,
      null,
    ]);
  });

  test("are found by name and by value", () => {
    expect(find(value, "needle").places).toEqual([["text"]]);
    expect(find(value, "LIST").places).toEqual([["list"]]);
  });
});
