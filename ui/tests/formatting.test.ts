import { describe, expect, test } from "vitest";

import { escapeBidi } from "../src/app/bidi.ts";
import { sizeOf } from "../src/app/bytes.ts";
import { clockTime } from "../src/app/clockTime.ts";
import { safeName } from "../src/app/download.ts";
import { absoluteTime, relativeTime, formatDuration } from "../src/app/Timestamp.tsx";
import { textDifference } from "../src/migration/textDifference.ts";
import { barsOf } from "../src/runs/gantt/bars.ts";
import { marksOf, placed, roomFor } from "../src/runs/gantt/timeScale.ts";
import { counted, named } from "../src/runs/list/formatCounts.ts";
import { freshStep, type Span } from "../src/runs/model.ts";

test.each([
  [0, "0 ms"],
  [-5, "0 ms"],
  [999.4, "999 ms"],
  [1_000, "1.0 s"],
  [59_900, "59.9 s"],
  [61_000, "1 min 1 s"],
  [3_599_999, "59 min 59 s"],
  [7_260_000, "2 h 1 min"],
])("a duration of %d ms is %s", (milliseconds, text) => {
  expect(formatDuration(milliseconds)).toBe(text);
});

test.each([
  [0, "just now"],
  [1_000, "1 s ago"],
  [119_999, "1 min ago"],
  [7_200_000, "2 h ago"],
  [90_000_000, "1 d ago"],
  [-4_000, "just now"],
  [-30_000, "in 30 s"],
  [-86_384_000, "in 24 h"],
  [-172_800_000, "in 2 d"],
])("%d ms ago is %s", (milliseconds, text) => {
  expect(relativeTime(milliseconds)).toBe(text);
});

test("times are shown in UTC if the reader wants that", () => {
  const at = Date.parse("2026-03-01T10:20:30.456Z");
  expect(absoluteTime(at, "utc")).toBe("2026-03-01 10:20:30.456 UTC");
  expect(clockTime(at, "utc")).toBe("10:20:30.456");
  expect(clockTime(at, "local")).toMatch(/^\d\d:\d\d:30\.456$/);
});

test("sizes are in decimal units", () => {
  expect([0, 999, 1_000, 1_500_000].map(sizeOf)).toEqual(["0 B", "999 B", "1.0 kB", "1.5 MB"]);
});

test("numbers agree with their nouns", () => {
  expect([counted(1, "run"), counted(0, "run"), counted(2, "run")]).toEqual(["1 run", "0 runs", "2 runs"]);
});

test("a long list of names ends with a number", () => {
  expect(named(["a", "b"], 3)).toBe("a and b");
  expect(named(["a", "b", "c", "d"], 2)).toBe("a, b and 2 more");
});

describe("text from agents", () => {
  test("cannot turn the direction of what follows", () => {
    expect(escapeBidi("abc\u202ecba")).toBe("abc\\u202ecba");
    expect(escapeBidi("plain é")).toBe("plain é");
  });

  test("cannot leave the folder of downloads", () => {
    expect(safeName("../../etc/passwd")).toBe("_.._etc_passwd");
    expect([safeName(""), safeName("..."), safeName("a\x00b.txt")]).toEqual(["file", "file", "a_b.txt"]);
    expect(safeName(`${"x".repeat(300)}.png`)).toHaveLength(120);
    expect(safeName(`${"x".repeat(300)}.png`)).toMatch(/\.png$/);
  });
});

test("two texts differ in the words between what they share", () => {
  expect(textDifference("the red fox", "the blue fox")).toEqual({
    before: "the ",
    old: "red",
    new: "blue",
    after: " fox",
  });
  expect(textDifference("a a", "a")).toEqual({ before: "a", old: " a", new: "", after: "" });
  expect(textDifference("same", "same")).toEqual({ before: "same", old: "", new: "", after: "" });
});

describe("the timeline", () => {
  const span = (kind: Span["kind"], from: number, to: number | null): Span => ({
    kind,
    attempt: 1,
    from,
    to,
    failed: false,
  });

  test("has room for what has elapsed, and does not grow with each moment", () => {
    for (const elapsed of [1, 99, 100, 5_000, 98_765, 1e7]) expect(roomFor(elapsed)).toBeGreaterThanOrEqual(elapsed);
    expect(roomFor(5_100)).toBe(roomFor(7_000));
  });

  test("has round marks", () => {
    expect(marksOf(10_000, 5)).toEqual([0, 2_000, 4_000, 6_000, 8_000, 10_000]);
    expect(marksOf(3 * 86_400_000, 1)).toEqual([0, 3 * 86_400_000]);
  });

  test("puts no bar on top of another, and none past the end", () => {
    const bars = [span("call", 0, 1), span("backoff", 1, 2), span("call", 2, 1_000)];
    const places = placed(bars, { from: 0, to: 1_000 }, 1_000, 500);
    for (const [number, place] of places.entries()) {
      expect(place.width).toBeGreaterThanOrEqual(3);
      const next = places[number + 1];
      if (next !== undefined) expect(place.left + place.width).toBeLessThanOrEqual(next.left + 1e-9);
    }
    expect(places.at(-1)!.left + places.at(-1)!.width).toBeCloseTo(500);
  });

  test("separates waiting for a slot from the call itself", () => {
    const step = { ...freshStep("draft"), status: "COMPLETED" as const, spans: [span("call", 100, 200)] };
    const bars = barsOf(step, 40, new Map([[1, [150]]]));
    expect(bars.map(({ kind, from, to }) => [kind, from, to])).toEqual([
      ["queued", 40, 100],
      ["queued", 100, 150],
      ["call", 150, 200],
    ]);
  });
});
