/** The runs that are asked for, page after page, read again whenever the doorbell rings. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { api, body } from "../../api/client.ts";
import { listenForRuns } from "../../api/doorbell.ts";
import type { components } from "../../api/schema.d.ts";
import { queryOf, type RunsSearch, written } from "./search.ts";

export type Run = components["schemas"]["RunSummary"];

const PAGE = 50;
// A ring may be lost; and without a bell this is all there is.
const WITH_BELL_MS = 60_000;
const WITHOUT_BELL_MS = 5_000;
// Many pages are as many requests: the more there are, the less often.
const PAUSE_FOR_EACH_PAGE_MS = 700;

export function useRuns(search: RunsSearch) {
  const [live, setLive] = useState(false);
  const query = useInfiniteQuery({
    queryKey: ["runs", "list", written(search)],
    queryFn: ({ pageParam, signal }) =>
      body(
        api.GET("/api/v1/runs", {
          params: { query: { ...queryOf(search), limit: PAGE, ...(pageParam === null ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: live ? WITH_BELL_MS : WITHOUT_BELL_MS,
    // What was there stays until the other filter has its answer.
    placeholderData: (before) => before,
  });
  useDoorbell(() => query.refetch(), (query.data?.pages.length ?? 1) * PAUSE_FOR_EACH_PAGE_MS, setLive);
  return { query, live };
}

/** Reads at once after a ring, then not for a while; rings that come meanwhile are one. */
function useDoorbell(read: () => Promise<unknown>, pause: number, onLive: (live: boolean) => void): void {
  const latest = useRef({ read, pause });
  useEffect(() => {
    latest.current = { read, pause };
  });
  useEffect(() => {
    const end = new AbortController();
    let resting = false;
    let rung = false;
    const ring = async () => {
      rung = true;
      if (resting) return;
      resting = true;
      while (rung && !end.signal.aborted) {
        rung = false;
        await latest.current.read();
        await new Promise((resolve) => setTimeout(resolve, latest.current.pause));
      }
      resting = false;
    };
    listenForRuns({ onRing: () => void ring(), onLive }, end.signal);
    return () => end.abort();
  }, [onLive]);
}
