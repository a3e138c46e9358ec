/** The list of runs, newest first, live. */

import { Anchor, Button, Code, Group, Select, Stack, Table, Text, Title } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import { Duration, Moment } from "../app/Moment.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { runsRoute } from "../app/router.tsx";
import { StatusBadge } from "../app/StatusBadge.tsx";

type Run = components["schemas"]["RunSummary"];

const STATUSES = ["PENDING", "RUNNING", "WAITING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"] as const;

export function RunsPage() {
  const search = runsRoute.useSearch();
  const navigate = useNavigate({ from: "/runs" });
  const query = useInfiniteQuery({
    queryKey: ["runs", search],
    queryFn: ({ pageParam }) =>
      body(
        api.GET("/api/v1/runs", {
          params: {
            query: {
              limit: 50,
              ...(search.status === undefined ? {} : { status: search.status as Run["status"] }),
              ...(search.workflow === undefined ? {} : { workflow: search.workflow }),
              ...(pageParam === null ? {} : { cursor: pageParam }),
            },
          },
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: 2_000,
  });
  const runs = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={1} size="h3">Runs</Title>
        <Select
          aria-label="Status"
          placeholder="Any status"
          clearable
          data={[...STATUSES]}
          value={search.status ?? null}
          onChange={(status) => void navigate({ search: (now) => ({ ...now, status: status ?? undefined }) as never })}
        />
      </Group>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isSuccess && runs.length === 0 ? <NoRuns /> : <RunTable runs={runs} />}
      {query.hasNextPage && (
        <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Older runs
        </Button>
      )}
    </Stack>
  );
}

function NoRuns() {
  return (
    <Stack gap="xs" data-testid="no-runs">
      <Text>There is no run to show. Start one:</Text>
      <Code block>trunkline run examples/first-workflow/workflow.yaml -i topic=rivers --follow</Code>
    </Stack>
  );
}

function RunTable({ runs }: { runs: readonly Run[] }) {
  return (
    <Table highlightOnHover stickyHeader data-testid="runs">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Status</Table.Th>
          <Table.Th>Workflow</Table.Th>
          <Table.Th>Run</Table.Th>
          <Table.Th>Duration</Table.Th>
          <Table.Th>Started</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {runs.map((run) => (
          <Table.Tr key={run.id} data-testid="run">
            <Table.Td><StatusBadge status={run.status} /></Table.Td>
            <Table.Td>{run.workflow.name} <Text span c="dimmed">v{run.workflow.version}</Text></Table.Td>
            <Table.Td><Anchor component={Link} to="/runs/$run" params={{ run: run.id } as never} ff="monospace" size="sm">{run.id}</Anchor></Table.Td>
            <Table.Td><Duration from={run.started_at} to={run.finished_at} /></Table.Td>
            <Table.Td><Moment at={run.created_at} /></Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
