/** The items of a step with `for_each`: how each of them stands, page by page; one can be chosen. */

import { Button, Group, Text } from "@mantine/core";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";

import { api, body } from "../../api/client.ts";
import { Loading } from "../../app/Loading.tsx";
import { Duration } from "../../app/Moment.tsx";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import { StatusBadge } from "../../app/StatusBadge.tsx";
import classes from "./inspector.module.css";
import type { Step } from "./useInspected.ts";

const PAGE = 50;
const AGAIN_MS = 2_000;

export function ItemList({ run, step, live, onSelect }: { run: string; step: Step; live: boolean; onSelect: (item: string) => void }) {
  const query = useInfiniteQuery({
    queryKey: ["run", run, "items", step.name, step.status],
    queryFn: ({ pageParam, signal }) => {
      const asked = { of: step.name, limit: PAGE, payloads: false, ...(pageParam === null ? {} : { cursor: pageParam }) };
      return body(api.GET("/api/v1/runs/{run}/steps", { params: { path: { run }, query: asked }, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
    refetchInterval: live ? AGAIN_MS : false,
  });
  if (query.error !== null) return <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  if (query.data === undefined) return <Loading />;
  const items = query.data.pages.flatMap((page) => page.items);
  const counts = step.items;
  return (
    <div data-testid="items">
      {counts !== null && counts !== undefined && (
        <Group gap="md" mb="xs">
          {(["completed", "failed", "running", "waiting", "pending", "skipped", "cancelled"] as const)
            .filter((name) => counts[name] > 0)
            .map((name) => <Text key={name} size="sm">{counts[name].toLocaleString()} {name}</Text>)}
        </Group>
      )}
      <ol className={classes["items"]} aria-label="Items">
        {items.map((item) => (
          <li key={item.name}>
            <button type="button" className={classes["item"]} onClick={() => onSelect(item.name)} data-testid="item">
              <span className={classes["name"]}>{item.name}</span>
              <StatusBadge status={item.status} />
              <span className={classes["about"]}>{item.error?.message ?? ""}</span>
              <span>{item.attempts > 1 ? `${item.attempts} attempts` : ""}</span>
              <span className={classes["when"]}><Duration from={item.started_at} to={item.finished_at} /></span>
            </button>
          </li>
        ))}
      </ol>
      {items.length === 0 && <Text size="sm" c="dimmed">No item has begun.</Text>}
      {query.hasNextPage && (
        <Button mt="xs" size="compact-sm" variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          More items
        </Button>
      )}
    </div>
  );
}
