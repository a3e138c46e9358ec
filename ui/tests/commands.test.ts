import { execFileSync } from "node:child_process";

import { describe, expect, test } from "vitest";

import { bodyFileOf, canRepeat, commandOf } from "../src/wire/commands.ts";
import type { Exchange } from "../src/wire/exchange.ts";
import { rowsOf } from "../src/wire/exchange.ts";
import { hasControl, literal, printed, pythonText, variablesIn, word } from "../src/wire/quoting.ts";
import { runCommand } from "../src/workflows/start/cliCommand.ts";

const NASTY = [
  "",
  "plain",
  "it's",
  "$HOME `id` $(id)",
  'a "b" \\n',
  "line\nbreak\ttab",
  "ümläut 😀",
  "!x *?[a] ~ # ;&|",
];

/** What a real shell makes of a command. */
function shell(command: string, env: Record<string, string> = {}): string {
  return execFileSync("/bin/sh", ["-c", command], { encoding: "utf8", env });
}

function exchange(request: Partial<Exchange["request"]>, more: Partial<Exchange> = {}): Exchange {
  return {
    step: "draft",
    attempt: 1,
    kind: "send",
    request: { method: "POST", url: "http://agent.test/rpc", headers: {}, body: "{}", ...request },
    ...more,
  } as Exchange;
}

describe("quoting for a shell", () => {
  test.each(NASTY)("passes a text on as it is: %j", (text) => {
    expect(shell(`printf %s ${literal(text)}`)).toBe(text);
    expect(shell(`printf %s ${word(text)}`)).toBe(text);
    expect(shell(printed(text))).toBe(text);
  });

  test("replaces the variables of secrets, and no others", () => {
    const text = "Bearer $TRUNKLINE_SECRET_1 `id` $HOME";
    expect(variablesIn(text)).toEqual(["TRUNKLINE_SECRET_1"]);
    expect(shell(`printf %s ${word(text)}`, { TRUNKLINE_SECRET_1: "s3cret", HOME: "/root" })).toBe(
      "Bearer s3cret `id` $HOME",
    );
  });

  test("writes control characters that an argument cannot hold", () => {
    const text = "a\x00b\x1b\\n";
    expect(hasControl(text)).toBe(true);
    expect(shell(printed(text))).toBe(text);
    expect(hasControl("line\nbreak\ttab")).toBe(false);
  });

  test("makes an expression for Python", () => {
    expect(pythonText('a "b"')).toBe('"a \\"b\\""');
    expect(pythonText("Bearer $TRUNKLINE_SECRET")).toBe('"Bearer " + os.environ["TRUNKLINE_SECRET"]');
    expect(pythonText("")).toBe('""');
  });
});

describe("a recorded request as a command", () => {
  test("is a curl command", () => {
    expect(commandOf(exchange({ headers: { "Content-Type": "application/json" }, body: '{"a":1}' }), "curl")).toBe(
      `curl -sS -X POST http://agent.test/rpc -H 'Content-Type: application/json' --data-raw '{"a":1}'`,
    );
  });

  test("has no body for GET", () => {
    expect(commandOf(exchange({ method: "GET" }), "curl")).toBe("curl -sS -X GET http://agent.test/rpc");
    expect(commandOf(exchange({ method: "GET" }), "python")).not.toContain("data=");
  });

  test("does not expand brackets of a URL", () => {
    expect(commandOf(exchange({ method: "GET", url: "http://[::1]/a{b}" }), "curl")).toContain("--globoff");
  });

  test("takes a login from the environment", () => {
    const login = exchange({ headers: { Authorization: "Basic $TRUNKLINE_SECRET" } });
    expect(commandOf(login, "curl")).toContain('-u "$TRUNKLINE_SECRET"');
    expect(commandOf(login, "httpie")).toContain('--auth "$TRUNKLINE_SECRET"');
    expect(commandOf(login, "python")).toContain('base64.b64encode(os.environ["TRUNKLINE_SECRET"].encode())');
    expect(commandOf(login, "curl").split("\n")[0]).toMatch(/^# .*TRUNKLINE_SECRET$/);
  });

  test("reads a body that was cut from a file, and sends nothing without it", () => {
    const cut = exchange({ body: "{", body_cut: true }, { step: "each[3]", attempt: 2 });
    expect(bodyFileOf(cut)).toBe("body-of-each-3-attempt-2.txt");
    expect(commandOf(cut, "curl")).toContain("test -s body-of-each-3-attempt-2.txt && curl");
    expect(commandOf(cut, "httpie")).toMatch(/< body-of-each-3-attempt-2\.txt$/);
    expect(bodyFileOf(exchange({}))).toBeNull();
  });

  test("exists only for HTTP requests that Trunkline sent", () => {
    expect(canRepeat(exchange({}))).toBe(true);
    expect(canRepeat(exchange({}, { kind: "push" }))).toBe(false);
    expect(canRepeat(exchange({ url: "stdio:agent" }))).toBe(false);
  });

  test("starts a run with its exact input", () => {
    expect(runCommand("it's", 3, { a: 1 })).toBe(
      `trunkline run 'it'\\''s' --version 3 --follow --input-file - <<'INPUT'\n{\n  "a": 1\n}\nINPUT`,
    );
  });
});

describe("a list of exchanges", () => {
  const poll = (id: number, attempt = 1) => exchange({}, { id, attempt, kind: "poll" });

  test("has one row for three or more polls of an attempt", () => {
    const rows = rowsOf([exchange({}, { id: 1 }), poll(2), poll(3), poll(4), poll(5, 2), poll(6, 2)]);
    expect(rows.map((row) => (row.of === "one" ? row.one.name : row.polls.map(({ name }) => name)))).toEqual([
      "1",
      ["2", "3", "4"],
      "5",
      "6",
    ]);
  });
});
