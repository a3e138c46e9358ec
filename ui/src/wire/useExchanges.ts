/** The exchanges of a run or of one step, page by page; while it goes on, what is shown of them is asked for again. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";

type WirePage = components["schemas"]["WirePage"];

const PAGE = 200;
const AGAIN_MS = 2_000;

/** `moved` changes when something has happened that may have brought exchanges. */
export function useExchanges(run: string, step: string | null, live: boolean, moved: string) {
  const found = useInfiniteQuery({
    queryKey: ["wire", run, step],
    queryFn: async ({ pageParam, signal }) => {
      const query = { limit: PAGE, ...(step === null ? {} : { step }), ...(pageParam === null ? {} : { cursor: pageParam }) };
      // The other form, the archive, was not asked for.
      return (await body(api.GET("/api/v1/runs/{run}/wire", { params: { path: { run }, query }, signal }))) as WirePage;
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    staleTime: 0,
    refetchInterval: live ? AGAIN_MS : false,
  });
  const { isFetching, refetch } = found;
  const seen = useRef(moved);
  // What is under way may be older than the move; broken off, it might be the page that somebody has just asked for.
  useEffect(() => {
    if (isFetching || seen.current === moved) return;
    seen.current = moved;
    void refetch();
  }, [isFetching, moved, refetch]);
  return found;
}
