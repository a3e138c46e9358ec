/**
 * The actual start times of calls. A run's history has the time at which a call was dispatched; its exchanges have the
 * time at which it started. In between the call was queued because of the agent's limits.
 */

import { useThrottledValue } from "@mantine/hooks";
import { useQueries, type UseQueryResult } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";

import { isCall } from "../../wire/exchange.ts";
import { wirePage } from "../../wire/pages.ts";

/** The start times of the exchanges by attempt. */
export type CallTimes = ReadonlyMap<number, readonly number[]>;
/** By step name. */
type Times = ReadonlyMap<string, CallTimes>;

/** The data of complete pages and the next cursor, so that pages are read only once. */
interface Settled {
  readonly cursor: string | null;
  readonly exchanges: number;
  readonly times: Times;
}

const NOTHING: Settled = { cursor: null, exchanges: 0, times: new Map() };
const PAGE = 500;
// Above this number of pages, the timeline uses the history only.
const MOST_EXCHANGES = 20_000;
const LOOK_AGAIN_MS = 2_000;

/** By run. `moments`: the last known event of each run; the exchanges are read again when it changes. */
export function useCallTimes(moments: ReadonlyMap<string, number>): ReadonlyMap<string, Times> {
  const written = useThrottledValue([...moments].map((pair) => pair.join("=")).join(";"), LOOK_AGAIN_MS);
  const runs = useMemo(() => readMoments(written), [written]);
  const settled = useRef(new Map<string, Settled>());
  // The event of the last request, so that a failed request is not repeated before the run changes.
  const asked = useRef(new Map<string, number>());
  const readings = useQueries({
    queries: runs.map(({ run, moment }) => ({
      queryKey: ["call-times", run],
      queryFn: ({ signal }: { signal: AbortSignal }) => {
        asked.current.set(run, moment);
        return readOn(run, settled.current.get(run) ?? NOTHING, signal, (after) => settled.current.set(run, after));
      },
      enabled: moment > 0,
      staleTime: Infinity,
      gcTime: 0,
    })),
    combine: readingsOf,
  });
  // One request per run at a time; later changes are read after it.
  useEffect(() => {
    runs.forEach(({ run, moment }, place) => {
      const reading = readings[place];
      if (reading !== undefined && !reading.isFetching && moment > (asked.current.get(run) ?? 0))
        void reading.refetch({ cancelRefetch: false });
    });
  }, [runs, readings]);
  return useMemo(
    () => new Map(runs.map(({ run }, place) => [run, readings[place]?.data ?? NOTHING.times])),
    [runs, readings],
  );
}

/** Stable until new data is read. */
function readingsOf(results: readonly UseQueryResult<Times>[]) {
  return results.map(({ data, isFetching, refetch }) => ({ data, isFetching, refetch }));
}

function readMoments(written: string): readonly { readonly run: string; readonly moment: number }[] {
  return written.split(";").map((pair) => {
    const [run, moment] = pair.split("=") as [string, string];
    return { run, moment: Number(moment) };
  });
}

async function readOn(
  run: string,
  before: Settled,
  signal: AbortSignal,
  onSettled: (after: Settled) => void,
): Promise<Times> {
  let after = before;
  while (after.exchanges < MOST_EXCHANGES) {
    const page = await wirePage(run, { limit: PAGE, payloads: false }, after.cursor, signal);
    const times = new Map(after.times);
    for (const { step, attempt, started_at } of page.items.filter(isCall)) {
      const attempts = new Map(times.get(step));
      attempts.set(
        attempt,
        [...(attempts.get(attempt) ?? []), Date.parse(started_at)].sort((one, other) => one - other),
      );
      times.set(step, attempts);
    }
    if (page.next_cursor === null) return times;
    after = { cursor: page.next_cursor, exchanges: after.exchanges + page.items.length, times };
    onSettled(after);
  }
  return after.times;
}
