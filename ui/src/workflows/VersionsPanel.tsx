/** The versions of a workflow, and the differences between two of them. */

import { Button, Group, Select, Stack, Table, Text } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { AnchorLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { workflowRoute } from "../app/router.tsx";
import { CodeDiff } from "../code/CodeDiff.tsx";
import { versionQuery, versionsQuery, type Workflow, type WorkflowItem } from "./queries.ts";
import { textOf } from "./definitionText.ts";
import classes from "./workflows.module.css";

export function VersionsPanel({ workflow }: { workflow: Workflow }) {
  const { against } = workflowRoute.useSearch();
  const query = useInfiniteQuery(versionsQuery(workflow.name));
  const versions = query.data?.pages.flatMap((page) => page.items) ?? [];
  if (query.error !== null) return <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  const before = against ?? (workflow.version > 1 ? workflow.version - 1 : null);
  return (
    <div className={classes["versions"]}>
      <section className={classes["list"]} aria-label="Versions" tabIndex={0}>
        <VersionTable versions={versions} shown={workflow.version} />
        {query.hasNextPage && (
          <Button
            fullWidth
            variant="subtle"
            loading={query.isFetchingNextPage}
            onClick={() => void query.fetchNextPage()}
          >
            Load older versions
          </Button>
        )}
      </section>
      <section className={classes["pane"]} aria-label="Changes">
        {before === null ? (
          <Text size="sm" c="dimmed" data-testid="only-version">
            Version 1 is the first version. Select another version to see its changes.
          </Text>
        ) : (
          <Changes workflow={workflow} before={before} versions={versions} />
        )}
      </section>
    </div>
  );
}

function VersionTable({ versions, shown }: { versions: readonly WorkflowItem[]; shown: number }) {
  return (
    <Table highlightOnHover data-testid="versions">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Version</Table.Th>
          <Table.Th>Steps</Table.Th>
          <Table.Th>Saved</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {versions.map(({ name, version, steps, created_at }) => (
          <Table.Tr key={version} data-testid="version-row" data-shown={version === shown || undefined}>
            <Table.Td>
              <AnchorLink
                to="/workflows/$workflow"
                params={{ workflow: name }}
                search={{ tab: "versions", version }}
                size="sm"
                fw={version === shown ? 700 : 400}
                aria-current={version === shown ? "true" : undefined}
              >
                v{version}
              </AnchorLink>
            </Table.Td>
            <Table.Td>{steps}</Table.Td>
            <Table.Td className={classes["moment"]}>
              <Timestamp at={created_at} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Changes({
  workflow,
  before,
  versions,
}: {
  workflow: Workflow;
  before: number;
  versions: readonly WorkflowItem[];
}) {
  const navigate = useNavigate({ from: "/workflows/$workflow" });
  const other = useQuery(versionQuery(workflow.name, before));
  const choices = versions.map(({ version }) => version).filter((version) => version !== workflow.version);
  return (
    <Stack gap="xs" h="100%" mih={0}>
      <Group gap="xs" fz="sm">
        <span>Changes in v{workflow.version} since</span>
        <Select
          aria-label="Compare with version"
          size="xs"
          w={90}
          allowDeselect={false}
          data={[...new Set([...choices, before])].map((version) => ({ value: String(version), label: `v${version}` }))}
          value={String(before)}
          onChange={(version) => void navigate({ search: (now) => ({ ...now, against: Number(version) }) })}
          data-testid="against"
        />
        {other.data !== undefined && textOf(other.data) === textOf(workflow) && (
          <Text size="sm" c="dimmed">
            No changes.
          </Text>
        )}
      </Group>
      <div className={classes["grow"]}>
        {other.error !== null && <ProblemPanel error={other.error} again={() => void other.refetch()} />}
        {other.isPending && <Loading />}
        {other.data !== undefined && (
          <CodeDiff
            before={{ text: textOf(other.data), label: `Version ${before}` }}
            after={{ text: textOf(workflow), label: `Version ${workflow.version}` }}
            language="yaml"
          />
        )}
      </div>
    </Stack>
  );
}
