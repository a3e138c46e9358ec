/**
 * When an exchange began among those around it, and how long it took: until the answer began, and until it was whole.
 *
 * The words beside the bar say the same.
 */

import { lasting } from "../app/Moment.tsx";
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

/** How long nothing came: until the answer's first byte where that is known, otherwise until the first event. */
export function firstOf(exchange: Exchange): number | null {
  return exchange.frames?.[0]?.at_ms ?? null;
}

export function timingWords(exchange: Exchange): string {
  const first = firstOf(exchange);
  const total = lasting(exchange.duration_ms);
  return first === null ? total : `${total}, first event after ${lasting(first)}`;
}

export function TimingBar({ exchange, within }: { exchange: Exchange; within: Stretch }) {
  const length = within.to - within.from;
  const share = (milliseconds: number) => `${Math.min(100, Math.max(0, (milliseconds / length) * 100))}%`;
  const first = firstOf(exchange);
  const waited = first ?? exchange.duration_ms;
  return (
    <span className={classes["timing"]} title={timingWords(exchange)} aria-hidden>
      <span
        className={classes["waited"]}
        style={{ left: share(Date.parse(exchange.started_at) - within.from), width: share(waited) }}
      />
      {first !== null && (
        <span
          className={classes["received"]}
          style={{
            left: share(Date.parse(exchange.started_at) - within.from + waited),
            width: share(exchange.duration_ms - waited),
          }}
        />
      )}
    </span>
  );
}
