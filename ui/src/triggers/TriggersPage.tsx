/** The list of triggers, and what fires in the next 24 hours. */

import { Button, Code, Group, Stack, Table, Text, Title } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";

import { escapeBidi } from "../app/bidi.ts";
import { AnchorLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { usePermission } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import { NextDay } from "./NextDay.tsx";
import { OutcomeBadge } from "./OutcomeBadge.tsx";
import { Planned } from "./Planned.tsx";
import { type ListedTrigger, triggersQuery } from "./queries.ts";
import { sourceText } from "./source.ts";
import classes from "./triggers.module.css";

export function TriggersPage() {
  const query = useInfiniteQuery(triggersQuery);
  const navigate = useNavigate();
  const may = usePermission("admin");
  const triggers = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <Title order={1} size="h3">
          Triggers
        </Title>
        <ActionButton
          icon={Plus}
          refused={may.allowed ? null : may.reason}
          filled
          size="sm"
          onPress={() => void navigate({ to: "/new-trigger" })}
          testId="new-trigger"
        >
          New trigger
        </ActionButton>
      </Group>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.isSuccess && triggers.length === 0 && (
        <Text data-testid="no-triggers">
          No triggers yet. A trigger starts runs on a schedule, by webhook, or when an event arrives. In a terminal:{" "}
          <Code>trunkline triggers apply FILE</Code>
        </Text>
      )}
      {triggers.length > 0 && <TriggerTable triggers={triggers} />}
      {query.hasNextPage && (
        <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Load more triggers
        </Button>
      )}
      {triggers.length > 0 && <NextDay />}
    </Stack>
  );
}

function TriggerTable({ triggers }: { triggers: readonly ListedTrigger[] }) {
  return (
    <Table.ScrollContainer minWidth={0}>
      <Table highlightOnHover verticalSpacing={6} data-testid="triggers">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Trigger</Table.Th>
            <Table.Th visibleFrom="sm">Workflow</Table.Th>
            <Table.Th visibleFrom="xs">Fires</Table.Th>
            <Table.Th>Last firing</Table.Th>
            <Table.Th visibleFrom="md">Next firing</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {triggers.map((trigger) => (
            <Row key={trigger.id} trigger={trigger} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Row({ trigger }: { trigger: ListedTrigger }) {
  const last = trigger.last_firing;
  return (
    <Table.Tr data-testid="trigger-row" data-name={trigger.name}>
      <Table.Td className={classes["name"]}>
        <AnchorLink to="/triggers/$trigger" params={{ trigger: trigger.name }} size="sm">
          {trigger.name}
        </AnchorLink>
        {!trigger.enabled && (
          <Text size="xs" c="dimmed">
            Paused
          </Text>
        )}
      </Table.Td>
      <Table.Td visibleFrom="sm" className={classes["name"]}>
        {escapeBidi(trigger.workflow)}
      </Table.Td>
      <Table.Td visibleFrom="xs" className={classes["name"]}>
        {escapeBidi(sourceText(trigger))}
      </Table.Td>
      <Table.Td>
        {last === null ? (
          "Never"
        ) : (
          <Stack gap={0}>
            <OutcomeBadge outcome={last.outcome} />
            <Text size="xs" c="dimmed">
              <Timestamp at={last.at} />
            </Text>
          </Stack>
        )}
      </Table.Td>
      <Table.Td visibleFrom="md">{trigger.next_at === null ? "–" : <Planned at={trigger.next_at} />}</Table.Td>
    </Table.Tr>
  );
}
