import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { match } from "../src/app/palette/match.ts";
import { retryPlan } from "../src/runs/actions/retryPlan.ts";
import { itemsSearch } from "../src/runs/inspector/itemsSearch.ts";
import { isFiltered, queryOf, runsSearch, statusesOf, written } from "../src/runs/list/search.ts";
import { addressOf, openedIn, pairIn, wireSearch } from "../src/wire/search.ts";

describe("the filters of the list of runs", () => {
  beforeEach(() => void vi.useFakeTimers({ now: Date.parse("2026-03-01T12:00:00Z") }));
  afterEach(() => void vi.useRealTimers());

  test("are read from an address, whatever is in it", () => {
    expect(
      runsSearch({ status: "failed,bogus,RUNNING", workflow: "", agent: ["x"], q: 4711, children: "yes", more: 1 }),
    ).toEqual({ status: "RUNNING,FAILED", q: "4711" });
  });

  test("take a range or two times, and the range if both are there", () => {
    const times = { since: "2026-02-01", until: "2026-02-02T01:00:00+01:00" };
    expect(runsSearch(times)).toEqual({ since: "2026-02-01T00:00:00.000Z", until: "2026-02-02T00:00:00.000Z" });
    expect(runsSearch({ ...times, last: "1h" })).toEqual({ last: "1h" });
    expect(runsSearch({ last: "1y", since: "yesterday" })).toEqual({});
  });

  test("take labels one by one or as a list, and leave out what is none", () => {
    expect(runsSearch({ label: "customer:a,b" })).toEqual({ label: ["customer:a,b"] });
    expect(runsSearch({ label: ["b:2", "a:1", "b:2", "c", "c:", ":c", 7] })).toEqual({ label: ["a:1", "b:2"] });
    expect(queryOf({ label: ["a:1", "b:2"] })).toMatchObject({ label: ["a:1", "b:2"] });
    expect(isFiltered(runsSearch({ label: "a:1" }))).toBe(true);
  });

  test("become a request", () => {
    expect(queryOf({ status: "FAILED,RUNNING", last: "24h", q: "x" })).toEqual({
      payloads: false,
      status: ["RUNNING", "FAILED"],
      q: "x",
      since: "2026-02-28T12:00:00.000Z",
      children: false,
    });
  });

  test("ask for child runs if a parent is chosen", () => {
    expect(queryOf({ parent: "run-1" })).toMatchObject({ parent: "run-1", children: true });
    expect(queryOf({ children: true }).children).toBe(true);
  });

  test("are the same text in any order", () => {
    expect(written({ q: "x", status: "FAILED" })).toBe(written({ status: "failed", q: "x" }));
  });

  test("do not count child runs as a filter", () => {
    expect([isFiltered({}), isFiltered({ children: true }), isFiltered({ q: "x" })]).toEqual([false, false, true]);
  });

  test("know each status once", () => {
    expect(statusesOf("failed,FAILED,,x")).toEqual(["FAILED"]);
    expect(statusesOf(undefined)).toEqual([]);
  });
});

test("only known item filters are read from an address", () => {
  expect(itemsSearch({ items: "failed" })).toEqual({ items: "failed" });
  expect([itemsSearch({ items: "toString" }), itemsSearch({ items: 1 }), itemsSearch({})]).toEqual([{}, {}, {}]);
});

describe("the wire view in an address", () => {
  test("is read, whatever is in it", () => {
    expect(wireSearch({ exchange: 7, compare: "1,2", part: "request" })).toEqual({
      exchange: 7,
      compare: "1,2",
      part: "request",
    });
    expect(wireSearch({ exchange: "", compare: "1,2,3", part: "everything" })).toEqual({});
  });

  test("names the open exchanges", () => {
    for (const opened of [new Set<string>(), new Set(["7"]), new Set(["7", "p9"])]) {
      expect(openedIn(addressOf(opened))).toEqual(opened);
    }
    expect(openedIn(undefined)).toBeNull();
    expect(addressOf(new Set(["7"]))).toBe(7);
  });

  test("names two attempts", () => {
    expect(pairIn("1,3")).toEqual({ before: 1, after: 3 });
    expect(pairIn(undefined)).toBeNull();
  });
});

describe("the command palette", () => {
  test("ranks the start of a word before the middle of one, and both before scattered letters", () => {
    const [starts, middle, scattered] = [
      match("run", "All runs"),
      match("run", "Trunk"),
      match("run", "Read the unit name"),
    ];
    expect(starts!).toBeGreaterThan(middle!);
    expect(middle!).toBeGreaterThan(scattered ?? -1);
  });

  test("prefers the shorter of two names", () => {
    expect(match("run", "Runs")!).toBeGreaterThan(match("run", "Runs of agents")!);
  });

  test("finds nothing in other names", () => {
    expect(match("zzz", "Runs")).toBeNull();
    expect(match("  ", "Runs")).toBe(0);
  });
});

describe("the plan of a retry", () => {
  type Step = Parameters<typeof retryPlan>[0][number];
  type Edge = Parameters<typeof retryPlan>[1][number];
  const steps = [
    { name: "a", status: "COMPLETED" },
    { name: "b", status: "COMPLETED" },
    { name: "c", status: "FAILED", items: { completed: 2 } },
  ] as Step[];
  const edges = [
    { from: "a", to: "b" },
    { from: "b", to: "c" },
  ] as Edge[];

  test("keeps completed steps, and completed items of a failed step", () => {
    expect(retryPlan(steps, edges, "rest", null, false)).toEqual({ kept: ["a", "b"], again: ["c"], halfDone: ["c"] });
  });

  test("runs all items again with another input", () => {
    expect(retryPlan(steps, edges, "rest", null, true).halfDone).toEqual([]);
  });

  test("runs the chosen step and everything after it again", () => {
    expect(retryPlan(steps, edges, "step", "b", false)).toEqual({ kept: ["a"], again: ["b", "c"], halfDone: [] });
  });

  test("keeps nothing if all steps run again", () => {
    expect(retryPlan(steps, edges, "all", null, false)).toEqual({ kept: [], again: ["a", "b", "c"], halfDone: [] });
  });
});
