/** The exchanges of a run or of one step, page by page; while it goes on, the last page is asked for again. */

import { useInfiniteQuery } from "@tanstack/react-query";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";

type WirePage = components["schemas"]["WirePage"];

const PAGE = 200;
const AGAIN_MS = 2_000;

/** `moved` changes when something has happened that may have brought exchanges. */
export function useExchanges(run: string, step: string | null, live: boolean, moved: string) {
  return useInfiniteQuery({
    queryKey: ["wire", run, step, moved],
    queryFn: async ({ pageParam, signal }) => {
      const query = { limit: PAGE, ...(step === null ? {} : { step }), ...(pageParam === null ? {} : { cursor: pageParam }) };
      // The other form, the archive, was not asked for.
      return (await body(api.GET("/api/v1/runs/{run}/wire", { params: { path: { run }, query }, signal }))) as WirePage;
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: (before, query) => (query?.queryKey[2] === step && query.queryKey[1] === run ? before : undefined),
    refetchInterval: live ? AGAIN_MS : false,
  });
}
