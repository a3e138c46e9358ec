/**
 * When an exchange began among those around it, and how long it took: until there was a connection, until the answer
 * began, and until it was whole.
 *
 * The words beside the bar say the same.
 */

import { lasting } from "../app/Timestamp.tsx";
import type { Exchange } from "./exchange.ts";
import classes from "./wire.module.css";

export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** From the first beginning to the last end. */
export function stretchOf(exchanges: readonly Exchange[]): Stretch {
  let from = Infinity;
  let to = -Infinity;
  for (const exchange of exchanges) {
    const began = Date.parse(exchange.started_at);
    from = Math.min(from, began);
    to = Math.max(to, began + exchange.duration_ms);
  }
  return exchanges.length === 0 ? { from: 0, to: 1 } : { from, to: Math.max(to, from + 1) };
}

interface Parts {
  readonly connected: number;
  /** Null: it is not known when the answer began. */
  readonly first: number | null;
}

/** Until there was a connection, and until the answer or its first event came, as far as that is known. */
function partsOf(exchange: Exchange): Parts {
  const first = exchange.first_byte_ms ?? exchange.frames?.[0]?.at_ms ?? null;
  return { connected: exchange.connect_ms ?? 0, first };
}

export function timingWords(exchange: Exchange): string {
  const { first } = partsOf(exchange);
  const connect = exchange.connect_ms ?? null;
  return [
    lasting(exchange.duration_ms),
    ...(connect === null ? [] : [`connected after ${lasting(connect)}`]),
    ...(first === null
      ? []
      : [`${(exchange.first_byte_ms ?? null) === null ? "first event" : "answer began"} after ${lasting(first)}`]),
  ].join(", ");
}

export function TimingBar({ exchange, within }: { exchange: Exchange; within: Stretch }) {
  const length = within.to - within.from;
  const share = (milliseconds: number) => `${Math.min(100, Math.max(0, (milliseconds / length) * 100))}%`;
  const began = Date.parse(exchange.started_at) - within.from;
  const { connected, first } = partsOf(exchange);
  const waited = first ?? exchange.duration_ms;
  const piece = (name: string, from: number, to: number) =>
    to > from && <span className={classes[name]} style={{ left: share(began + from), width: share(to - from) }} />;
  return (
    <span className={classes["timing"]} title={timingWords(exchange)} aria-hidden>
      {piece("connecting", 0, connected)}
      {piece("waited", connected, waited)}
      {piece("received", waited, exchange.duration_ms)}
    </span>
  );
}
