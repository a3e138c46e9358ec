/** A run's history with everything in it, read page by page and kept; only what is new is asked for. */

import { useThrottledValue } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { api, body } from "../../api/client.ts";
import type { components } from "../../api/schema.d.ts";
import type { RunEvent } from "../../api/stream.ts";

type EventPage = components["schemas"]["EventPage"];

const PAGE = 1_000;
// A browser holds so many with ease; of a longer history the beginning is shown.
export const MOST_EVENTS = 50_000;
const EVERY_MS = 500;

/** `seq`: the last event that is known to be there. Nothing is read while it is not `wanted`. */
export function useEvents(run: string, seq: number, wanted = true) {
  const queries = useQueryClient();
  const key = ["run", run, "events"];
  const query = useQuery({
    queryKey: key,
    queryFn: async ({ signal }) => {
      const known = queries.getQueryData<readonly RunEvent[]>(key) ?? [];
      return [...known, ...(await after(run, known, signal))];
    },
    enabled: wanted,
    staleTime: Infinity,
  });
  const last = lastOf(query.data);
  const latest = useThrottledValue(seq, EVERY_MS);
  const isBehind = wanted && query.isSuccess && !query.isFetching && latest > last && query.data.length < MOST_EVENTS;
  useEffect(() => {
    if (isBehind) void query.refetch();
  }, [isBehind, latest]);
  return query;
}

function lastOf(events: readonly RunEvent[] | undefined): number {
  return events?.[events.length - 1]?.seq ?? 0;
}

async function after(run: string, known: readonly RunEvent[], signal: AbortSignal): Promise<readonly RunEvent[]> {
  const found: RunEvent[] = [];
  let last = lastOf(known);
  for (;;) {
    const query = { limit: PAGE, after: last };
    // The other form, the stream, was not asked for.
    const page = (await body(api.GET("/api/v1/runs/{run}/events", { params: { path: { run }, query }, signal }))) as EventPage;
    const items = page.items as readonly RunEvent[];
    found.push(...items);
    if (page.next_cursor === null || known.length + found.length >= MOST_EVENTS) return found;
    last = items[items.length - 1]!.seq;
  }
}

/** Those of the step and, if one is chosen, of its attempt; without a step all of them. */
export function eventsOf(events: readonly RunEvent[], step: string | null, attempt: number | null): readonly RunEvent[] {
  if (step === null) return events;
  return events.filter(({ data }) => data["step"] === step && (attempt === null || data["attempt"] === undefined || data["attempt"] === attempt));
}
