/** Loads the exchanges of a run, a step or an attempt page by page, and refreshes them while it is active. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";

import { useRefetchOnChange } from "../api/useRefetchOnChange.ts";
import { wirePage } from "./pages.ts";

const PAGE = 200;
const AGAIN_MS = 2_000;

export interface Asked {
  readonly run: string;
  readonly step: string | null;
  readonly attempt: number | null;
  /** More exchanges may follow. */
  readonly live: boolean;
  /** Changes with events that may have added exchanges. */
  readonly moved: string;
}

/** `upTo`: load pages until the exchange with this number is included. */
export function useExchanges({ run, step, attempt, live, moved }: Asked, upTo = 0) {
  const found = useInfiniteQuery({
    queryKey: ["wire", run, step, attempt],
    queryFn: ({ pageParam, signal }) => {
      const asked = { limit: PAGE, ...(step === null ? {} : { step }), ...(attempt === null ? {} : { attempt }) };
      return wirePage(run, asked, pageParam, signal);
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    staleTime: 0,
    refetchInterval: live ? AGAIN_MS : false,
  });
  const { data, hasNextPage, isFetching, isError, fetchNextPage } = found;
  const exchanges = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
  useRefetchOnChange(moved, found);
  const isShort = hasNextPage && !isFetching && !isError && exchanges.every(({ id = 0 }) => id < upTo);
  useEffect(() => {
    if (isShort) void fetchNextPage();
  }, [isShort, fetchNextPage]);
  return { ...found, exchanges };
}
