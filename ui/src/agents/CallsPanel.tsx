/** The last attempts that called an agent and have ended, with links to their steps. */

import { Button, Group, Stack, Table, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";

import { Loading } from "../app/Loading.tsx";
import { AnchorLink } from "../app/links.tsx";
import { formatDuration, Timestamp } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import classes from "./agents.module.css";
import { OutcomeBadge } from "./Badges.tsx";
import { type AgentCall, callsQuery } from "./queries.ts";

export function CallsPanel({ agent }: { agent: string }) {
  const query = useInfiniteQuery(callsQuery(agent));
  const calls = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap="sm">
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.isSuccess && calls.length === 0 && (
        <Text size="sm" data-testid="no-calls">
          No calls yet. Calls are listed here after a step of a run has called this agent.
        </Text>
      )}
      {calls.length > 0 && (
        <Table.ScrollContainer minWidth={0}>
          <Table highlightOnHover verticalSpacing={6} data-testid="agent-calls">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Outcome</Table.Th>
                <Table.Th>Step</Table.Th>
                {["Attempt", "Run", "Duration", "Ended"].map((name) => (
                  <Table.Th key={name} visibleFrom="sm">
                    {name}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {calls.map((call) => (
                <CallRow key={`${call.run}/${call.step}/${call.attempt}`} call={call} />
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      {query.hasNextPage && (
        <Button
          variant="default"
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
          data-testid="more-calls"
        >
          Load earlier calls
        </Button>
      )}
    </Stack>
  );
}

function CallRow({ call }: { call: AgentCall }) {
  const took = call.duration_ms === null ? "–" : formatDuration(call.duration_ms);
  return (
    <Table.Tr data-testid="agent-call" data-outcome={call.outcome}>
      <Table.Td>
        <OutcomeBadge outcome={call.outcome} />
        {call.error_code !== null && (
          <Text size="xs" c="dimmed" ff="monospace">
            {call.error_code}
          </Text>
        )}
      </Table.Td>
      <Table.Td className={classes["wrap"]}>
        <AnchorLink
          to="/runs/$run"
          params={{ run: call.run }}
          search={{ step: call.step, attempt: call.attempt }}
          size="sm"
          underline="always"
        >
          {call.step}
        </AnchorLink>
        {/* On a phone these replace the columns. */}
        <Group hiddenFrom="sm" mt={6} gap="2px 12px" fz="xs" c="dimmed">
          <RunLink call={call} />
          <span>attempt {call.attempt}</span>
          <span>{took}</span>
          <Timestamp at={call.ended_at} />
        </Group>
      </Table.Td>
      <Table.Td visibleFrom="sm">{call.attempt}</Table.Td>
      <Table.Td visibleFrom="sm">
        <RunLink call={call} />
      </Table.Td>
      <Table.Td visibleFrom="sm">{took}</Table.Td>
      <Table.Td visibleFrom="sm">
        <Timestamp at={call.ended_at} />
      </Table.Td>
    </Table.Tr>
  );
}

function RunLink({ call: { run } }: { call: AgentCall }) {
  return (
    <AnchorLink
      to="/runs/$run"
      params={{ run }}
      inherit
      ff="monospace"
      underline="always"
      title={run}
      className={classes["whole"]}
    >
      …{run.slice(-12)}
    </AnchorLink>
  );
}
