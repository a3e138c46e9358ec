/** Loads the events of a run or a step page by page, and then only new events. */

import { useThrottledValue } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import type { RunEvent } from "../../api/eventStream.ts";
import { eventPage } from "../eventPage.ts";

interface History {
  readonly events: readonly RunEvent[];
  /** The list is complete up to this sequence number. */
  readonly to: number;
}

const NOTHING: History = { events: [], to: 0 };
// The number of events that are loaded before the user scrolls.
const FIRST = 100;
const PAGE = 1_000;
// The maximum number of events in memory; of a longer history, the beginning is shown.
export const MOST_EVENTS = 50_000;
const EVERY_MS = 500;

/** `seq`: the last known event of the run. Nothing is loaded unless `wanted`. */
export function useEvents(run: string, step: string | null, seq: number, wanted = true) {
  const queries = useQueryClient();
  const key = ["run", run, "events", step];
  const latest = useThrottledValue(seq, EVERY_MS);
  // All events of a step are loaded, because they contain the results of its attempts.
  const [most, setMost] = useState(step === null ? FIRST : MOST_EVENTS);
  const query = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => readOn(run, step, queries.getQueryData<History>(key) ?? NOTHING, latest, most, signal),
    enabled: wanted,
    staleTime: Infinity,
  });
  const { data, isFetching, isSuccess, refetch } = query;
  const isBehind = wanted && isSuccess && !isFetching && latest > data.to && data.events.length < most;
  useEffect(() => {
    if (isBehind) void refetch({ cancelRefetch: false });
  }, [isBehind, latest, most, refetch]);
  const isFull = data !== undefined && data.events.length >= most;
  const more = () => {
    if (isFull) setMost(Math.min(most * 2, MOST_EVENTS));
  };
  return { ...query, events: data?.events, cutAt: isFull && most === MOST_EVENTS ? data.to : null, more };
}

async function readOn(
  run: string,
  step: string | null,
  known: History,
  latest: number,
  most: number,
  signal: AbortSignal,
): Promise<History> {
  const events = [...known.events];
  let to = known.to;
  while (events.length < most) {
    const query = { limit: Math.min(PAGE, most - events.length), after: to, ...(step === null ? {} : { step }) };
    const page = await eventPage(run, query, signal);
    events.push(...page.events);
    to = Math.max(to, page.events[page.events.length - 1]?.seq ?? 0);
    // All events that existed at the time of the request are loaded.
    if (page.isLast) return { events, to: Math.max(to, latest) };
  }
  return { events, to };
}
