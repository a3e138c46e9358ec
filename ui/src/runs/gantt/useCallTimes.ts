/**
 * When agents were called in fact: a run's history says when a call was asked for, what went over the wire when it
 * began. Between the two the call waited for its turn, since an agent takes only so many at once.
 */

import { useThrottledValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

import { isCall } from "../../wire/exchange.ts";
import { wirePage } from "../../wire/pages.ts";

/** By attempt: when its exchanges began. */
export type CallTimes = ReadonlyMap<number, readonly number[]>;
type Times = ReadonlyMap<string, CallTimes>;

/** What whole pages have told, and where the next one begins: what is known is not read again. */
interface Settled {
  readonly run: string;
  readonly cursor: string | null;
  readonly exchanges: number;
  readonly times: Times;
}

const NOTHING: Times = new Map();
const PAGE = 500;
// Beyond it the chart shows what the history says.
const MOST_EXCHANGES = 20_000;
const LOOK_AGAIN_MS = 2_000;

export function useCallTimes(run: string, seq: number): Times {
  const moment = useThrottledValue(seq, LOOK_AGAIN_MS);
  const settled = useRef<Settled>({ run, cursor: null, exchanges: 0, times: NOTHING });
  // The moment of the last reading: what fails is not asked for again before something has happened.
  const asked = useRef(0);
  const { data, isFetching, refetch } = useQuery({
    queryKey: ["call-times", run],
    queryFn: ({ signal }) => {
      asked.current = moment;
      const before = settled.current.run === run ? settled.current : { run, cursor: null, exchanges: 0, times: NOTHING };
      return readOn(before, signal, (after) => {
        settled.current = after;
      });
    },
    enabled: moment > 0,
    staleTime: Infinity,
    gcTime: 0,
  });
  // One reading at a time; what has happened meanwhile is asked for after it.
  useEffect(() => {
    if (moment > asked.current && !isFetching) void refetch({ cancelRefetch: false });
  }, [moment, isFetching, refetch]);
  return data ?? NOTHING;
}

async function readOn(before: Settled, signal: AbortSignal, onSettled: (after: Settled) => void): Promise<Times> {
  let after = before;
  while (after.exchanges < MOST_EXCHANGES) {
    const { run, cursor } = after;
    const page = await wirePage(run, { limit: PAGE, payloads: false }, cursor, signal);
    const times = new Map(after.times);
    for (const { step, attempt, started_at } of page.items.filter(isCall)) {
      const attempts = new Map(times.get(step));
      attempts.set(attempt, [...(attempts.get(attempt) ?? []), Date.parse(started_at)].sort((one, other) => one - other));
      times.set(step, attempts);
    }
    if (page.next_cursor === null) return times;
    after = { run, cursor: page.next_cursor, exchanges: after.exchanges + page.items.length, times };
    onSettled(after);
  }
  return after.times;
}
