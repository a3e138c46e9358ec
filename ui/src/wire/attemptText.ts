/** The exchanges of an attempt as text, for a comparison of two attempts. Pure. */

import type { components } from "../api/schema.d.ts";
import { formattedJson } from "../code/formatJson.ts";
import { errorText, type Exchange, kindOf } from "./exchange.ts";

export type Part = "request" | "response" | "output";

export const PARTS: readonly { readonly value: Part; readonly label: string }[] = [
  { value: "request", label: "Requests" },
  { value: "response", label: "Responses" },
  { value: "output", label: "Result" },
];

type Step = components["schemas"]["Step"];

export function attemptText(exchanges: readonly Exchange[], part: Part, attempt: number, step: Step): string {
  switch (part) {
    case "request":
      return exchanges.map(requestText).join("\n\n");
    case "response":
      return exchanges.map(responseText).join("\n\n");
    case "output":
      return outcomeText(exchanges, step.attempts === attempt ? step : null);
  }
}

function requestText(exchange: Exchange): string {
  const { method, url, headers, body } = exchange.request;
  return [`${method} ${url}`, ...headerLines(headers), "", readable(body)].join("\n");
}

function responseText(exchange: Exchange): string {
  const { response } = exchange;
  const error = errorText(exchange.error);
  const head = `${kindOf(exchange)}: ${response === null ? "no response" : `HTTP ${response.status}`}`;
  return [
    head,
    ...(error === null ? [] : [error]),
    ...(response === null ? [] : [...headerLines(response.headers), "", ...bodyLines(exchange)]),
  ].join("\n");
}

function bodyLines(exchange: Exchange): readonly string[] {
  const { frames, response } = exchange;
  return frames !== null && frames !== undefined && frames.length > 0
    ? frames.map((frame) => readable(frame.data))
    : [readable(response?.body ?? "")];
}

/** The output is stored only for the last attempt; for the others, the last response is shown. */
function outcomeText(own: readonly Exchange[], step: Step | null): string {
  if (step !== null && step.output !== null) return JSON.stringify(step.output, null, 2);
  const last = own[own.length - 1];
  if (last === undefined) return "";
  const error = errorText(last.error);
  return ["No output.", ...(error === null ? [] : [error]), ...last.notes].join("\n");
}

function headerLines(headers: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}

function readable(text: string): string {
  return formattedJson(text) ?? text;
}
