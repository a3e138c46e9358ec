/** The list of runs, newest first, live. */

import { Button, Group, Stack, Title } from "@mantine/core";
import { useMemo, useRef, useState } from "react";

import { Loading } from "../app/Loading.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { runsRoute } from "../app/router.tsx";
import { RunListBar } from "./list/RunListBar.tsx";
import { Filters } from "./list/Filters.tsx";
import { NoRuns, NoMatchingRuns } from "./list/EmptyList.tsx";
import { RunTable } from "./list/RunTable.tsx";
import { isFiltered, written } from "./list/search.ts";
import { useIsInteracting } from "./list/useIsInteracting.ts";
import { useRuns } from "./list/useRuns.ts";
import { useSelection } from "./list/useSelection.ts";
import { useStableRows } from "./list/useStableRows.ts";
import { Views } from "./list/Views.tsx";

export function RunsPage() {
  const search = runsRoute.useSearch();
  const { query, live } = useRuns(search);
  const runs = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  const area = useRef<HTMLDivElement>(null);
  const table = useRef<HTMLTableElement>(null);
  // Counts the requests to show new runs.
  const [looks, setLooks] = useState(0);
  const list = written(search);
  const selection = useSelection(runs, list);
  const held = useIsInteracting(area, table, runs.length > 0) || selection.runs.size > 0;
  const { rows, fresh } = useStableRows(
    runs,
    query.hasNextPage,
    held,
    query.isPlaceholderData ? null : `${looks} ${list}`,
  );
  const showFresh = () => {
    window.scrollTo(0, 0);
    setLooks(looks + 1);
  };
  return (
    <Stack gap="sm">
      <Group gap="md">
        <Title order={1} size="h3">
          Runs
        </Title>
        <Views search={search} />
      </Group>
      <Filters />
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.isSuccess && rows.length === 0 && (isFiltered(search) ? <NoMatchingRuns search={search} /> : <NoRuns />)}
      {rows.length > 0 && (
        <div ref={area}>
          <RunListBar
            shown={rows.length}
            hasMore={query.hasNextPage}
            live={live}
            fresh={fresh}
            onFresh={showFresh}
            selection={selection}
            search={search}
          />
          <RunTable rows={rows} selection={selection} area={table} />
        </div>
      )}
      {query.hasNextPage && (
        <Button
          variant="default"
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
          data-testid="older"
        >
          Load older runs
        </Button>
      )}
    </Stack>
  );
}
