/** Exchanges with agents, and how they are grouped in a list. */

import type { components } from "../api/schema.d.ts";
import type { Labels } from "../app/labels.ts";

export type Exchange = components["schemas"]["Exchange"];
export type Kind = NonNullable<Exchange["kind"]>;

export const KINDS: Labels<Kind, "word" | "meaning"> = {
  send: { word: "Call", meaning: "The step's message to the agent" },
  stream: { word: "Stream", meaning: "The step's message to the agent, with a streamed response" },
  poll: { word: "Poll", meaning: "Poll of the agent's remote task" },
  cancel: { word: "Cancel", meaning: "Request to the agent to cancel its task" },
  find: { word: "Find", meaning: "Query whether the agent already has the task" },
  card: { word: "Card", meaning: "Request for the agent card, to detect the protocol" },
  token: { word: "Token", meaning: "Request for an access token" },
  push: { word: "Push", meaning: "Push notification from the agent" },
  caller: { word: "Caller", meaning: "Request from the A2A caller" },
};

export function kindOf(exchange: Exchange): Kind {
  return exchange.kind ?? "send";
}

/** Whether it was a request to Trunkline. */
export function isIncoming(exchange: Exchange): boolean {
  return ["push", "caller"].includes(kindOf(exchange));
}

/** Whether it sent the step's message to the agent. */
export function isCall(exchange: Exchange): boolean {
  return ["send", "stream"].includes(kindOf(exchange));
}

export interface Named {
  /** A stable name while other exchanges are inserted: its number, if it has one. */
  readonly name: string;
  readonly exchange: Exchange;
}

/** One row of a list: an exchange, or consecutive polls of one attempt, named after the first. */
export type Row =
  { readonly of: "one"; readonly one: Named } | { readonly of: "polls"; readonly polls: readonly Named[] };

export function pollsName(polls: readonly Named[]): string {
  return `p${polls[0]!.name}`;
}

/** The number in a name, which is that of the exchange or of the first poll; 0 if it has none. */
export function numberOf(name: string): number {
  const number = /^p?(\d+)$/.exec(name)?.[1];
  return number === undefined ? 0 : Number(number);
}

/** Groups three or more polls: a task of an hour has thousands. */
export function rowsOf(exchanges: readonly Exchange[]): readonly Row[] {
  const named = namesOf(exchanges);
  const rows: Row[] = [];
  let start = 0;
  while (start < named.length) {
    const first = named[start]!;
    let end = start + 1;
    while (end < named.length && isNextPoll(first.exchange, named[end]!.exchange)) end++;
    const together = named.slice(start, end);
    if (together.length >= 3) rows.push({ of: "polls", polls: together });
    else rows.push(...together.map((one) => ({ of: "one" as const, one })));
    start = end;
  }
  return rows;
}

/** A longer exchange may be added before shorter ones later, so positions cannot be names. */
function namesOf(exchanges: readonly Exchange[]): readonly Named[] {
  const alike = new Map<string, number>();
  return exchanges.map((exchange) => {
    if (exchange.id !== undefined) return { name: String(exchange.id), exchange };
    const began = `${exchange.step} ${exchange.attempt} ${kindOf(exchange)} ${exchange.started_at}`;
    const number = alike.get(began) ?? 0;
    alike.set(began, number + 1);
    return { name: `${began} ${number}`, exchange };
  });
}

function isNextPoll(first: Exchange, next: Exchange): boolean {
  return (
    kindOf(first) === "poll" && kindOf(next) === "poll" && first.step === next.step && first.attempt === next.attempt
  );
}

/** Whether it has a successful response. */
export function isSuccessful(exchange: Exchange): boolean {
  return exchange.error === null && exchange.response !== null && exchange.response.status < 400;
}

export function errorText(error: Exchange["error"]): string | null {
  if (error === null || error === undefined) return null;
  return typeof error === "string" ? error : JSON.stringify(error);
}
