/**
 * Loads the pages of the run list and refreshes them after change notifications.
 *
 * Most notifications concern new or active runs. So the first page and the pages with unfinished runs are refreshed, the
 * rest once a minute.
 */

import { type InfiniteData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { api, body } from "../../api/client.ts";
import { subscribeToRunChanges } from "../../api/runChanges.ts";
import type { components } from "../../api/schema.d.ts";
import { isFinal } from "../model.ts";
import { queryOf, type RunsSearch, written } from "./search.ts";

export type Run = components["schemas"]["RunSummary"];

const PAGE = 50;
// Covers lost notifications, and replaces them when they are not available.
const WITH_BELL_MS = 60_000;
const WITHOUT_BELL_MS = 5_000;
const PAUSE_MS = 1_000;

type Page = components["schemas"]["RunPage"];
type Pages = InfiniteData<Page, string | null>;

export function useRuns(search: RunsSearch) {
  const [live, setLive] = useState(false);
  const queries = useQueryClient();
  const list = written(search);
  const key = ["runs", "list", list];
  // The last refresh: its list, whether it included all pages, and the time of the last full refresh.
  const reading = useRef({ list: "", all: true, at: 0 });
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: async ({ pageParam, signal }) => {
      if (pageParam === null) {
        const { at } = reading.current;
        const all = reading.current.list !== list || Date.now() - at >= WITH_BELL_MS;
        reading.current = { list, all, at: all ? Date.now() : at };
      }
      const known = reading.current.list !== list || reading.current.all ? undefined : queries.getQueryData<Pages>(key);
      const before = known?.pages[known.pageParams.indexOf(pageParam)];
      if (pageParam !== null && before !== undefined && isSettled(before.items)) return before;
      const page = await body(
        api.GET("/api/v1/runs", {
          params: { query: { ...queryOf(search), limit: PAGE, ...(pageParam === null ? {} : { cursor: pageParam }) } },
          signal,
        }),
      );
      return pageParam === null && before !== undefined && known!.pages.length > 1 ? lengthened(page, before) : page;
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: live ? WITH_BELL_MS : WITHOUT_BELL_MS,
    // Keep the previous list until the new filter has a response.
    placeholderData: (before) => before,
  });
  const read = async () => {
    // A running request may have been sent before the notification.
    if (query.isFetching) await query.refetch({ cancelRefetch: false });
    await query.refetch({ cancelRefetch: false });
  };
  useDoorbell(read, setLive);
  return { query, live };
}

function isSettled(runs: readonly Run[]): boolean {
  return runs.every((run) => isFinal(run.status));
}

/**
 * The first page together with the runs that new runs have pushed out of it, so that the next page still starts at the
 * same run. If that is not possible, the page is used unchanged, and the other pages are loaded again.
 */
function lengthened(page: Page, before: Page): Page {
  const [first, last, end] = [before.items[0]?.id, page.items.at(-1)?.id, before.items.at(-1)?.id];
  // Runs are missing between the two, or the page overlaps with the next one.
  if (first === undefined || last === undefined || end === undefined || first < last || last < end) return page;
  const pushedOut = before.items.filter((run) => run.id < last);
  if (pushedOut.length > PAGE || !isSettled(pushedOut)) return page;
  return { ...page, items: [...page.items, ...pushedOut], next_cursor: before.next_cursor };
}

/** Throttles refreshes: immediately after a notification, then at most one per interval. */
function useDoorbell(read: () => Promise<unknown>, onLive: (live: boolean) => void): void {
  const latest = useRef(read);
  useEffect(() => {
    latest.current = read;
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
        await latest.current();
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
      resting = false;
    };
    subscribeToRunChanges({ onChange: () => void ring(), onLive }, end.signal);
    return () => end.abort();
  }, [onLive]);
}
