/** Why a step calls its agent: the agents that it compared, and those that it tried. Or where its output comes from. */

import { Anchor, Table, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";

import { Timestamp } from "../../app/Timestamp.tsx";
import type { Step } from "./useDetails.ts";

type Routing = NonNullable<Step["routing"]>;
type Candidate = Routing["candidates"][number];

const STATUS_WORDS: Readonly<Record<Candidate["status"], string>> = {
  chosen: "Chosen",
  available: "Available",
  busy: "Busy",
  unhealthy: "Unhealthy",
  breaker_open: "Circuit breaker open",
};

export function RoutingView({ routing }: { routing: Routing }) {
  return (
    <details data-testid="routing">
      <summary>
        <Text span size="xs" c="dimmed">
          {routing.reason === null ? "No agent has been chosen yet" : `Agent chosen: ${routing.reason}`}
        </Text>
      </summary>
      {routing.candidates.length > 0 && (
        <Table data-testid="candidates" withRowBorders={false} fz="xs" maw={640}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Agent</Table.Th>
              <Table.Th>Status</Table.Th>
              <Table.Th>Reason</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {routing.candidates.map((each) => (
              <Table.Tr key={each.agent}>
                <Table.Td>
                  <Anchor component={Link} to={"/agents/$agent"} params={{ agent: each.agent } as never} size="xs">
                    {each.agent}
                  </Anchor>
                </Table.Td>
                <Table.Td>{STATUS_WORDS[each.status]}</Table.Td>
                <Table.Td>{each.reason}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {routing.others > 0 && <Note text={`${routing.others} other agents fit.`} />}
      {routing.tried.length > 0 && <Note text={`Tried before in this attempt: ${routing.tried.join(", ")}`} />}
      {routing.hedges.length > 0 && <Note text={`Called at the same time: ${routing.hedges.join(", ")}`} />}
    </details>
  );
}

/** The step that the output was reused from. */
export function FromCache({ origin }: { origin: NonNullable<Step["from_cache"]> }) {
  return (
    <Text size="xs" c="dimmed" data-testid="from-cache">
      From cache: step {origin.step} of{" "}
      <Anchor
        component={Link}
        to="/runs/$run"
        params={{ run: origin.run_id } as never}
        search={{ step: origin.step } as never}
        size="xs"
      >
        run {origin.run_id.slice(-12)}
      </Anchor>
      , completed <Timestamp at={origin.completed_at} />
    </Text>
  );
}

function Note({ text }: { text: string }) {
  return (
    <Text size="xs" c="dimmed">
      {text}
    </Text>
  );
}
