/**
 * The timing of an exchange relative to the others: until it was connected, until the response started, and until it was
 * complete.
 *
 * The text next to the bar contains the same information.
 */

import { formatDuration } from "../app/Timestamp.tsx";
import type { Exchange } from "./exchange.ts";
import classes from "./wire.module.css";

export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** From the earliest start to the latest end. */
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
  /** Null if the start of the response is unknown. */
  readonly first: number | null;
}

/** The time until the connection, and until the response or its first event, as far as known. */
function partsOf(exchange: Exchange): Parts {
  const first = exchange.first_byte_ms ?? exchange.frames?.[0]?.at_ms ?? null;
  return { connected: exchange.connect_ms ?? 0, first };
}

export function timingWords(exchange: Exchange): string {
  const { first } = partsOf(exchange);
  const connect = exchange.connect_ms ?? null;
  return [
    formatDuration(exchange.duration_ms),
    ...(connect === null ? [] : [`connected after ${formatDuration(connect)}`]),
    ...(first === null
      ? []
      : [`${(exchange.first_byte_ms ?? null) === null ? "first event" : "first byte"} after ${formatDuration(first)}`]),
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
