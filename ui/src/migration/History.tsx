/** The history of an agent: changes of its migration, card and grade. */

import { Button, Stack, Table, Text, Title } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { ArrowRightLeft, FileText, GraduationCap } from "lucide-react";

import { Timestamp } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import classes from "./migration.module.css";
import { eventsQuery, type AgentEvent, type State } from "./queries.ts";
import { StageBadge } from "./StageBadge.tsx";

export function History({ agent }: { agent: string }) {
  const query = useInfiniteQuery(eventsQuery(agent));
  const events = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap={6} data-testid="history">
      <Title order={2} size="h5">
        History
      </Title>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isSuccess && events.length === 0 && <Text size="sm">No events yet.</Text>}
      {events.length > 0 && (
        <div className={classes["scroll"]}>
          <Table withTableBorder verticalSpacing={4}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Event</Table.Th>
                <Table.Th>Reason</Table.Th>
                <Table.Th>User</Table.Th>
                <Table.Th>Time</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {events.map((event) => (
                <Table.Tr key={event.id} data-testid="event" data-kind={event.kind}>
                  <Table.Td>
                    <What event={event} />
                  </Table.Td>
                  <Table.Td className={classes["words"]}>{event.why}</Table.Td>
                  <Table.Td className={classes["words"]}>{event.who}</Table.Td>
                  <Table.Td>
                    <Timestamp at={event.at} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      )}
      {query.hasNextPage && (
        <Button
          variant="default"
          size="xs"
          w="fit-content"
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          Load older events
        </Button>
      )}
    </Stack>
  );
}

function What({ event }: { event: AgentEvent }) {
  if (event.kind === "migration") {
    const { stage, percent, forced } = event.data as State;
    return (
      <>
        <StageBadge stage={stage} />
        {(stage === "shadow" || stage === "canary") && ` ${percent}%`}
        {forced && (
          <Text span size="sm" c="dimmed">
            {" "}
            (blockers overridden)
          </Text>
        )}
      </>
    );
  }
  const [Icon, label] = CHANGES[event.kind];
  return (
    <span className={classes["line"]}>
      <Icon size={14} aria-hidden />
      <span>{label}</span>
    </span>
  );
}

const CHANGES = {
  card_changed: [FileText, "Card changed"],
  grade_changed: [GraduationCap, "Grade changed"],
  dialect_changed: [ArrowRightLeft, "Protocol changed"],
} as const;
