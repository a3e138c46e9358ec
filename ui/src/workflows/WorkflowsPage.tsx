/** The list of workflows with their steps and recent runs. */

import { Button, Code, Group, Stack, Table, Text, TextInput, Title } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Plus, Search } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { usePermission } from "../app/permissions.ts";
import { AnchorLink, ButtonLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { workflowsRoute } from "../app/router.tsx";
import { useShortcut } from "../app/shortcuts.ts";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import { AgentNames } from "./AgentNames.tsx";
import { type WorkflowItem, workflowsQuery } from "./queries.ts";
import { RecentRunIcons } from "./RecentRunIcons.tsx";
import classes from "./workflows.module.css";

const TYPING_MS = 200;

export function WorkflowsPage() {
  const { q } = workflowsRoute.useSearch();
  const may = usePermission("admin");
  const query = useInfiniteQuery(workflowsQuery(q));
  const workflows = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={1} size="h3">
          Workflows
        </Title>
        <Group gap="xs">
          <SearchField given={q ?? ""} />
          {may.allowed ? (
            <ButtonLink to="/new-workflow" leftSection={<Plus size={16} aria-hidden />} data-testid="new-workflow">
              New workflow
            </ButtonLink>
          ) : (
            <ActionButton icon={Plus} refused={may.reason} size="sm" testId="new-workflow">
              New workflow
            </ActionButton>
          )}
        </Group>
      </Group>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.isSuccess && workflows.length === 0 && <Nothing q={q} />}
      {workflows.length > 0 && <WorkflowTable workflows={workflows} />}
      {query.hasNextPage && (
        <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Load more workflows
        </Button>
      )}
    </Stack>
  );
}

/** The typed text is written to the URL after a short delay, and follows other changes of the URL. */
function SearchField({ given }: { given: string }) {
  const navigate = useNavigate({ from: "/workflows" });
  const field = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(given);
  const sent = useRef(given);
  const look = useDebouncedCallback((q: string) => {
    sent.current = q;
    void navigate({ search: q === "" ? {} : { q }, replace: true });
  }, TYPING_MS);
  useEffect(() => {
    if (given === sent.current) return;
    sent.current = given;
    setText(given);
  }, [given]);
  useShortcut("/", "Search workflows", () => field.current?.focus());
  return (
    <TextInput
      ref={field}
      type="search"
      aria-label="Search workflows by name"
      placeholder="Search by name"
      leftSection={<Search size={16} aria-hidden />}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        look(event.currentTarget.value);
      }}
      maxLength={255}
      data-testid="search"
    />
  );
}

function Nothing({ q }: { q: string | undefined }) {
  if (q !== undefined) {
    return (
      <Group gap="xs" data-testid="no-workflows">
        <Text>No workflows match “{q}”.</Text>
        <AnchorLink to="/workflows" search={{}}>
          Clear search
        </AnchorLink>
      </Group>
    );
  }
  return (
    <Stack gap="xs" data-testid="no-workflows">
      <Text>No workflows yet. Create one here, or save one from a file:</Text>
      <Code block>trunkline workflows apply examples/first-workflow/workflow.yaml</Code>
    </Stack>
  );
}

function WorkflowTable({ workflows }: { workflows: readonly WorkflowItem[] }) {
  return (
    <Table.ScrollContainer minWidth={720}>
      <Table highlightOnHover data-testid="workflows">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Workflow</Table.Th>
            <Table.Th>Version</Table.Th>
            <Table.Th>Steps</Table.Th>
            <Table.Th>Calls</Table.Th>
            <Table.Th>Recent runs</Table.Th>
            <Table.Th>Saved</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {workflows.map((workflow) => (
            <Table.Tr key={workflow.id} data-testid="workflow" data-workflow={workflow.name}>
              <Table.Td className={classes["description"]}>
                <AnchorLink
                  to="/workflows/$workflow"
                  params={{ workflow: workflow.name }}
                  fw={600}
                  size="sm"
                  className={classes["name"]}
                >
                  {workflow.name}
                </AnchorLink>
                {workflow.description !== null && (
                  <Text size="xs" c="dimmed" lineClamp={2}>
                    {workflow.description}
                  </Text>
                )}
              </Table.Td>
              <Table.Td>v{workflow.version}</Table.Td>
              <Table.Td>{workflow.steps}</Table.Td>
              <Table.Td>
                <AgentNames agents={workflow.agents} workflows={workflow.workflows} most={4} />
              </Table.Td>
              <Table.Td>
                <RecentRunIcons runs={workflow.last_runs ?? []} />
              </Table.Td>
              <Table.Td className={classes["moment"]}>
                <Timestamp at={workflow.created_at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
