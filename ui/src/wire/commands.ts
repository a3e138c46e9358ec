/**
 * A recorded request as something to run: curl, HTTPie, or Python with nothing but its standard library.
 *
 * Comments before it say what it cannot repeat: secrets, which come from the environment, and what the record has cut.
 */

import type { Exchange } from "./exchange.ts";
import { hasControl, literal, printed, pythonText, variablesIn, word } from "./quoting.ts";

export type Form = "curl" | "httpie" | "python";

export const FORMS: readonly { readonly form: Form; readonly name: string }[] = [
  { form: "curl", name: "curl" },
  { form: "httpie", name: "HTTPie" },
  { form: "python", name: "Python" },
];

type Request = Exchange["request"];

const REDACTED = "[redacted]";
// curl would read them as patterns.
const GLOB = /[[\]{}]/;
// HTTPie cannot be told to leave this alone.
const UNSPEAKABLE_IN_HTTPIE = /\\[:=@;]/;
const BASIC = /^Basic \$(TRUNKLINE_SECRET[A-Z0-9_]*)$/;

/** What can be repeated: not the agent's own calls, and not what never was HTTP. */
export function canRepeat(exchange: Exchange): boolean {
  return exchange.kind !== "push" && /^https?:/.test(exchange.request.url);
}

export function commandOf(exchange: Exchange, form: Form): string {
  const { request } = exchange;
  const makers = { curl, httpie, python };
  return [...comments(exchange, form), makers[form](request)].join("\n");
}

function comments(exchange: Exchange, form: Form): readonly string[] {
  const { request, notes } = exchange;
  const everywhere = [request.url, ...Object.values(request.headers)];
  const variables = [...new Set(everywhere.flatMap(variablesIn))];
  const lines = notes.filter((note) => note.startsWith("The request body"));
  if (variables.length > 0) lines.unshift(`Set first, as they are not recorded: ${variables.join(", ")}`);
  if ([...everywhere, request.body].some((text) => text.includes(REDACTED))) {
    lines.push(`Put in yourself what is not recorded: ${REDACTED}`);
  }
  if (form === "httpie") {
    for (const [name, value] of Object.entries(request.headers)) {
      if (UNSPEAKABLE_IN_HTTPIE.test(value)) lines.push(`HTTPie cannot send this header as it was: ${name}`);
    }
  }
  return lines.map((line) => `# ${line.replace(/\s+/g, " ")}`);
}

function curl(request: Request): string {
  const words = ["curl", "-sS", "-X", literal(request.method)];
  if (GLOB.test(request.url)) words.push("--globoff");
  words.push(word(request.url));
  for (const [name, value] of Object.entries(request.headers)) {
    const login = BASIC.exec(value);
    // The variable holds what a person knows, user:password; curl encodes it.
    if (login !== null) words.push("-u", `"$${login[1]}"`);
    else words.push("-H", value === "" ? literal(`${name};`) : word(`${name}: ${value}`));
  }
  if (request.method === "GET") return words.join(" ");
  if (hasControl(request.body)) return `${printed(request.body)} | ${[...words, "--data-binary", "@-"].join(" ")}`;
  return [...words, "--data-raw", literal(request.body)].join(" ");
}

function httpie(request: Request): string {
  const piped = hasControl(request.body);
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
  return piped ? `${printed(request.body)} | ${command}` : command;
}

/** With the beginning escaped where HTTPie would read it, with the colon before it, as another sign of its own. */
function unlike(value: string): string {
  return /^[=@:;]/.test(value) ? `\\${value}` : value;
}

function python(request: Request): string {
  const login = Object.values(request.headers).some((value) => BASIC.test(value));
  const variables = [request.url, ...Object.values(request.headers)].some((text) => variablesIn(text).length > 0);
  const inUrl = variablesIn(request.url).length > 0;
  const imports = [
    ...(login ? ["import base64"] : []),
    ...(variables ? ["import os"] : []),
    "import urllib.error",
    ...(inUrl ? ["import urllib.parse"] : []),
    "import urllib.request",
  ];
  const headers = Object.entries(request.headers).map(([name, value]) => `        ${JSON.stringify(name)}: ${pythonHeader(value)},`);
  const url = pythonText(request.url, (value) => `urllib.parse.quote(${value}, safe="")`);
  const data = request.method === "GET" ? [] : [`    data=${pythonText(request.body)}.encode(),`];
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
  // As the bytes that were sent; Python would write other letters than these in its own way, or not at all.
  return /^[\x20-\x7e]*$/.test(value) ? text : `(${text}).encode()`;
}
