/** The last attempts on an agent that have ended, each with the way to its step. */

import { Button, Stack, Table, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";

import { Loading } from "../app/Loading.tsx";
import { AnchorLink } from "../app/links.tsx";
import { lasting, Moment } from "../app/Moment.tsx";
import { NamedColumns } from "../app/NamedColumns.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import classes from "./agents.module.css";
import { OutcomeMark } from "./Marks.tsx";
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
          No call of it has ended yet. Its calls are listed here as soon as a step of a run has called it.
        </Text>
      )}
      {calls.length > 0 && (
        <NamedColumns columns={["Outcome", "Step", "Attempt", "Run", "Took", "Ended"]} testid="agent-calls">
          {calls.map((call) => <CallRow key={`${call.run}/${call.step}/${call.attempt}`} call={call} />)}
        </NamedColumns>
      )}
      {query.hasNextPage && (
        <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()} data-testid="more-calls">
          Earlier calls
        </Button>
      )}
    </Stack>
  );
}

function CallRow({ call }: { call: AgentCall }) {
  return (
    <Table.Tr data-testid="agent-call" data-outcome={call.outcome}>
      <Table.Td>
        <OutcomeMark outcome={call.outcome} />
        {call.error_code !== null && <Text size="xs" c="dimmed" ff="monospace">{call.error_code}</Text>}
      </Table.Td>
      <Table.Td className={classes["wrap"]!}>
        <AnchorLink
          to="/runs/$run"
          params={{ run: call.run }}
          search={{ step: call.step, attempt: call.attempt }}
          size="sm"
        >
          {call.step}
        </AnchorLink>
      </Table.Td>
      <Table.Td>{call.attempt}</Table.Td>
      <Table.Td>
        <AnchorLink to="/runs/$run" params={{ run: call.run }} size="sm" ff="monospace" title={call.run}>
          …{call.run.slice(-12)}
        </AnchorLink>
      </Table.Td>
      <Table.Td>{call.duration_ms === null ? "–" : lasting(call.duration_ms)}</Table.Td>
      <Table.Td><Moment at={call.ended_at} /></Table.Td>
    </Table.Tr>
  );
}
