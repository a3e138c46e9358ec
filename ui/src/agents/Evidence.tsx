/** What an agent speaks, and how that is known: everything that was tried to find it out. */

import { Table, Text, Title } from "@mantine/core";

import { Timestamp } from "../app/Timestamp.tsx";
import classes from "./agents.module.css";
import type { Agent } from "./queries.ts";

export function Evidence({ agent }: { agent: Agent }) {
  const { dialect } = agent;
  return (
    <section className={classes["box"]} aria-labelledby="dialect-heading" data-testid="evidence">
      <Title order={2} size="h5" mb="xs" id="dialect-heading">
        What it speaks
      </Title>
      {dialect === null ? (
        <Text size="sm">
          {agent.protocol === "auto"
            ? "Nobody has asked it yet. It is asked for its card before the first call, or when you refresh its card."
            : `${agent.protocol}, as it is registered. Nobody has to ask it.`}
        </Text>
      ) : (
        <>
          <dl className={classes["facts"]}>
            <dt>Dialect</dt>
            <dd>{dialect.protocol}</dd>
            <dt>Why</dt>
            <dd>{dialect.evidence}</dd>
            <dt>Decided</dt>
            <dd>
              <Timestamp at={dialect.decided_at} />
            </dd>
            <dt>Called at</dt>
            <dd>{dialect.url}</dd>
            {dialect.card_url !== null && (
              <>
                <dt>Card at</dt>
                <dd>{dialect.card_url}</dd>
              </>
            )}
            <dt>Offers</dt>
            <dd>{offers(dialect.streams, dialect.pushes)}</dd>
            {dialect.tenant !== null && (
              <>
                <dt>Tenant</dt>
                <dd>{dialect.tenant}</dd>
              </>
            )}
          </dl>
          {dialect.tried.length > 0 && (
            <Table.ScrollContainer minWidth={0} mt="xs">
              <Table fz="sm" data-testid="tried">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Tried</Table.Th>
                    <Table.Th>Answered</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {dialect.tried.map((probe, place) => (
                    <Table.Tr key={place}>
                      <Table.Td className={classes["wrap"]}>{probe.tried}</Table.Td>
                      <Table.Td className={classes["wrap"]}>{probe.answered}</Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Table.ScrollContainer>
          )}
        </>
      )}
    </section>
  );
}

function offers(streams: boolean, pushes: boolean): string {
  if (streams && pushes) return "Streams and push notifications";
  if (streams) return "Streams";
  return pushes ? "Push notifications" : "Neither streams nor push notifications";
}
