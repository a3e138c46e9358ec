/** The latest runs of a workflow. */

import { Group, Stack, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { AnchorLink } from "../app/links.tsx";
import { Duration, Timestamp } from "../app/Timestamp.tsx";
import { ColumnTable } from "../app/ColumnTable.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { StatusBadge } from "../app/StatusBadge.tsx";
import { lastRunsQuery } from "./queries.ts";

export function RecentRuns({ workflow }: { workflow: string }) {
  const query = useQuery(lastRunsQuery(workflow));
  const runs = query.data?.items ?? [];
  return (
    <Stack gap="xs" component="section" aria-label="Recent runs">
      <Group justify="space-between">
        <Title order={2} size="h5">
          Recent runs
        </Title>
        <AnchorLink to="/runs" search={{ workflow }} size="sm" data-testid="all-runs">
          All runs of this workflow
        </AnchorLink>
      </Group>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isSuccess && runs.length === 0 && (
        <Text size="sm" c="dimmed">
          No runs yet.
        </Text>
      )}
      {runs.length > 0 && (
        <ColumnTable columns={["Status", "Run", "Version", "Duration", "Started"]} testid="last-runs">
          {runs.map((run) => (
            <Table.Tr key={run.id} data-testid="last-run">
              <Table.Td>
                <StatusBadge status={run.status} />
              </Table.Td>
              <Table.Td>
                <AnchorLink to="/runs/$run" params={{ run: run.id }} ff="monospace" size="sm">
                  {run.id}
                </AnchorLink>
              </Table.Td>
              <Table.Td>v{run.workflow.version}</Table.Td>
              <Table.Td>
                <Duration from={run.started_at} to={run.finished_at} />
              </Table.Td>
              <Table.Td>
                <Timestamp at={run.created_at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </ColumnTable>
      )}
    </Stack>
  );
}
