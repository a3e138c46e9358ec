/** The items of a `for_each` step, page by page, with a filter by status. */

import { Button, Text } from "@mantine/core";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";

import { api, body } from "../../api/client.ts";
import { Loading } from "../../app/Loading.tsx";
import { Duration } from "../../app/Timestamp.tsx";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import { runRoute } from "../../app/router.tsx";
import { StatusBadge } from "../../app/StatusBadge.tsx";
import type { StepModel } from "../model.ts";
import classes from "./inspector.module.css";
import { countsIn, ItemCounts } from "./ItemCounts.tsx";
import { LISTED, type Listed } from "./itemsSearch.ts";
import type { Step } from "./useDetails.ts";

const PAGE = 50;
const AGAIN_MS = 2_000;

export function ItemList({
  run,
  step,
  live,
  moving,
  onSelect,
}: {
  run: string;
  step: Step;
  live: boolean;
  /** The counts from the history while the step is running. */
  moving: StepModel["counts"];
  onSelect: (item: string) => void;
}) {
  const { items: shown = null } = runRoute.useSearch();
  const navigate = runRoute.useNavigate();
  const query = useInfiniteQuery({
    queryKey: ["run", run, "items", step.name, shown, step.status],
    queryFn: ({ pageParam, signal }) => {
      const asked = {
        of: step.name,
        limit: PAGE,
        payloads: false,
        ...(shown === null ? {} : { status: [...LISTED[shown]] }),
        ...(pageParam === null ? {} : { cursor: pageParam }),
      };
      return body(api.GET("/api/v1/runs/{run}/steps", { params: { path: { run }, query: asked }, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
    refetchInterval: live ? AGAIN_MS : false,
  });
  const show = (items: Listed | null) =>
    void navigate({
      search: ({ items: _, ...now }) => ({ ...now, ...(items === null ? {} : { items }) }),
      replace: true,
      resetScroll: false,
    });
  if (query.error !== null) return <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  if (query.data === undefined) return <Loading />;
  const items = query.data.pages.flatMap((page) => page.items);
  const counts = countsIn(step, live ? moving : null);
  return (
    <div data-testid="items">
      {counts !== null && <ItemCounts counts={counts} shown={shown} onShow={show} />}
      <ol className={classes["items"]} aria-label="Items" aria-busy={query.isPlaceholderData}>
        {items.map((item) => (
          <li key={item.name}>
            <button type="button" className={classes["item"]} onClick={() => onSelect(item.name)} data-testid="item">
              <span className={classes["name"]}>{item.name}</span>
              <StatusBadge status={item.status} />
              <span>{item.attempts > 1 ? `${item.attempts} attempts` : ""}</span>
              <span className={classes["when"]}>
                <Duration from={item.started_at} to={item.finished_at} />
              </span>
              {item.error != null && (
                <span className={classes["why"]} title={item.error.message} data-testid="item-why">
                  {item.error.message}
                </span>
              )}
            </button>
          </li>
        ))}
      </ol>
      {items.length === 0 && (
        <Text size="sm" c="dimmed">
          {shown === null ? "No items have started." : `No ${shown} items.`}
        </Text>
      )}
      {query.hasNextPage && (
        <Button
          mt="xs"
          size="compact-sm"
          variant="default"
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          Load more items
        </Button>
      )}
    </div>
  );
}
