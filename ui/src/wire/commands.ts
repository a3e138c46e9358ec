/**
 * Converts a recorded request to a command: curl, HTTPie, or Python with its standard library.
 *
 * Comments before the command list what it cannot repeat: secrets, which come from environment variables, and a
 * truncated body, which comes from a file.
 */

import { type Exchange, isIncoming } from "./exchange.ts";
import { hasControl, literal, printed, pythonText, variablesIn, word } from "./quoting.ts";

export type Form = "curl" | "httpie" | "python";

export const FORMS: readonly { readonly form: Form; readonly name: string }[] = [
  { form: "curl", name: "curl" },
  { form: "httpie", name: "HTTPie" },
  { form: "python", name: "Python" },
];

type Request = Exchange["request"];

const REDACTED = "[redacted]";
// curl would interpret them as URL patterns.
const GLOB = /[[\]{}]/;
// HTTPie has no way to escape these.
const UNSPEAKABLE_IN_HTTPIE = /\\[:=@;]/;
const BASIC = /^Basic \$(TRUNKLINE_SECRET[A-Z0-9_]*)$/;

/** Requests from agents and callers, and exchanges that were not HTTP cannot be repeated. */
export function canRepeat(exchange: Exchange): boolean {
  return !isIncoming(exchange) && /^https?:/.test(exchange.request.url);
}

/** The file that must contain the body, because the recorded body is truncated; null if it is complete. */
export function bodyFileOf({ step, attempt, request }: Exchange): string | null {
  if (request.body_cut !== true) return null;
  const name = step.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "");
  return `body-of-${name}-attempt-${attempt}.txt`;
}

export function commandOf(exchange: Exchange, form: Form): string {
  const makers = { curl, httpie, python };
  const file = bodyFileOf(exchange);
  const command = makers[form](exchange.request, file);
  return [...comments(exchange, form, file), command].join("\n");
}

function comments(exchange: Exchange, form: Form, file: string | null): readonly string[] {
  const { request } = exchange;
  const everywhere = [request.url, ...Object.values(request.headers)];
  const variables = [...new Set(everywhere.flatMap(variablesIn))];
  const lines = [...(request.body_notes ?? [])];
  if (file !== null) lines.push(`Save the whole body as ${file} first. Without that file nothing is sent.`);
  if (variables.length > 0)
    lines.unshift(`Set these environment variables first (secrets are not recorded): ${variables.join(", ")}`);
  if ([...everywhere, file ?? request.body].some((text) => text.includes(REDACTED))) {
    lines.push(`Replace the redacted values: ${REDACTED}`);
  }
  if (form === "httpie") {
    for (const [name, value] of Object.entries(request.headers)) {
      if (UNSPEAKABLE_IN_HTTPIE.test(value)) lines.push(`HTTPie cannot send this header unchanged: ${name}`);
    }
  }
  return lines.map((line) => `# ${line.replace(/\s+/g, " ")}`);
}

function curl(request: Request, file: string | null): string {
  const words = ["curl", "-sS", "-X", literal(request.method)];
  if (GLOB.test(request.url)) words.push("--globoff");
  words.push(word(request.url));
  for (const [name, value] of Object.entries(request.headers)) {
    const login = BASIC.exec(value);
    // The variable contains user:password; curl encodes it.
    if (login !== null) words.push("-u", `"$${login[1]}"`);
    else words.push("-H", value === "" ? literal(`${name};`) : word(`${name}: ${value}`));
  }
  if (request.method === "GET") return words.join(" ");
  if (file !== null) return `${isThere(file)}${[...words, "--data-binary", `@${file}`].join(" ")}`;
  if (hasControl(request.body)) return `${printed(request.body)} | ${[...words, "--data-binary", "@-"].join(" ")}`;
  return [...words, "--data-raw", literal(request.body)].join(" ");
}

/** Without this test, curl would send an empty body. */
function isThere(file: string): string {
  return `test -s ${file} && `;
}

function httpie(request: Request, file: string | null): string {
  const piped = file !== null || hasControl(request.body);
  const words = ["http", "--pretty=none"];
  if (!piped) words.push("--ignore-stdin");
  if (!piped && request.body !== "") words.push(`--raw=${literal(request.body)}`);
  const headers: string[] = [];
  for (const [name, value] of Object.entries(request.headers)) {
    const login = BASIC.exec(value);
    if (login !== null) words.push("--auth", `"$${login[1]}"`);
    else headers.push(value === "" ? literal(`${name};`) : word(`${name}:${unlike(value)}`));
  }
  const command = [...words, literal(request.method), word(request.url), ...headers].join(" ");
  if (file !== null) return `${isThere(file)}${command} < ${file}`;
  return piped ? `${printed(request.body)} | ${command}` : command;
}

/** Escapes the beginning where HTTPie would interpret it, together with the colon, as another separator. */
function unlike(value: string): string {
  return /^[=@:;]/.test(value) ? `\\${value}` : value;
}

function python(request: Request, file: string | null): string {
  const login = Object.values(request.headers).some((value) => BASIC.test(value));
  const variables = [request.url, ...Object.values(request.headers)].some((text) => variablesIn(text).length > 0);
  const inUrl = variablesIn(request.url).length > 0;
  const imports = [
    ...(login ? ["import base64"] : []),
    ...(variables ? ["import os"] : []),
    ...(file === null ? [] : ["import pathlib"]),
    "import urllib.error",
    ...(inUrl ? ["import urllib.parse"] : []),
    "import urllib.request",
  ];
  const headers = Object.entries(request.headers).map(
    ([name, value]) => `        ${JSON.stringify(name)}: ${pythonHeader(value)},`,
  );
  const url = pythonText(request.url, (value) => `urllib.parse.quote(${value}, safe="")`);
  const body =
    file === null ? `${pythonText(request.body)}.encode()` : `pathlib.Path(${JSON.stringify(file)}).read_bytes()`;
  const data = request.method === "GET" ? [] : [`    data=${body},`];
  return [
    ...imports,
    "",
    "request = urllib.request.Request(",
    `    ${url},`,
    ...data,
    "    headers={",
    ...headers,
    "    },",
    `    method=${JSON.stringify(request.method)},`,
    ")",
    "try:",
    "    response = urllib.request.urlopen(request)",
    "except urllib.error.HTTPError as refusal:",
    "    response = refusal",
    "print(response.status, response.read().decode())",
  ].join("\n");
}

function pythonHeader(value: string): string {
  const login = BASIC.exec(value);
  if (login !== null) {
    return `"Basic " + base64.b64encode(os.environ[${JSON.stringify(login[1])}].encode()).decode()`;
  }
  const text = pythonText(value);
  // The bytes that were sent: Python encodes other characters differently, or rejects them.
  return /^[\x20-\x7e]*$/.test(value) ? text : `(${text}).encode()`;
}
