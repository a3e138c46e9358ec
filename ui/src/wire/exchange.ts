/** Exchanges with agents as the API gives them, and how a list of them is read. */

import type { components } from "../api/schema.d.ts";
import type { Words } from "../app/words.ts";

export type Exchange = components["schemas"]["Exchange"];
export type Kind = NonNullable<Exchange["kind"]>;

export const KINDS: Words<Kind, "word" | "meaning"> = {
  send: { word: "Call", meaning: "The step's message to the agent" },
  stream: { word: "Stream", meaning: "The step's message; the answer came as a stream of events" },
  poll: { word: "Poll", meaning: "Asked how the agent's task stands" },
  cancel: { word: "Cancel", meaning: "Asked the agent to end its task" },
  find: { word: "Find", meaning: "Asked whether the agent has the task already" },
  card: { word: "Card", meaning: "Read the agent's card, to find out what it speaks" },
  token: { word: "Token", meaning: "Fetched a token for the agent" },
  push: { word: "Push", meaning: "The agent has called Trunkline" },
};

export function kindOf(exchange: Exchange): Kind {
  return exchange.kind ?? "send";
}

/** Whether it carried the step's message to the agent. */
export function isCall(exchange: Exchange): boolean {
  return ["send", "stream"].includes(kindOf(exchange));
}

export interface Named {
  /** Stays the same while others come before it: its number, if it has one. */
  readonly name: string;
  readonly exchange: Exchange;
}

/** One row of a list: an exchange, or polls of one attempt that follow each other, named after the first. */
export type Row =
  { readonly of: "one"; readonly one: Named } | { readonly of: "polls"; readonly polls: readonly Named[] };

export function pollsName(polls: readonly Named[]): string {
  return `p${polls[0]!.name}`;
}

/** The number of the exchange, or of the first poll, that a name is of; 0: it is of none. */
export function numberOf(name: string): number {
  const number = /^p?(\d+)$/.exec(name)?.[1];
  return number === undefined ? 0 : Number(number);
}

/** Three polls or more become one row: a task of an hour has thousands. */
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

/** One that began earlier and took longer comes later, and goes before the others: their places are no names. */
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

/** Whether it went as it should: an answer, and not one that refuses. */
export function isWell(exchange: Exchange): boolean {
  return exchange.error === null && exchange.response !== null && exchange.response.status < 400;
}

export function errorText(error: Exchange["error"]): string | null {
  if (error === null || error === undefined) return null;
  return typeof error === "string" ? error : JSON.stringify(error);
}
