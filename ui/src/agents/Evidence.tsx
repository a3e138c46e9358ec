/** An agent's dialect and the evidence for it: the probes that detected it. */

import { Table, Text, Title } from "@mantine/core";

import { Timestamp } from "../app/Timestamp.tsx";
import classes from "./agents.module.css";
import type { Agent } from "./queries.ts";

export function Evidence({ agent }: { agent: Agent }) {
  const { dialect } = agent;
  return (
    <section className={classes["box"]} aria-labelledby="dialect-heading" data-testid="evidence">
      <Title order={2} size="h5" mb="xs" id="dialect-heading">
        Dialect
      </Title>
      {dialect === null ? (
        <Text size="sm">
          {agent.protocol === "auto"
            ? "Not detected yet. Trunkline detects the protocol before the first call, or when you re-detect it."
            : `${agent.protocol}, as registered. Detection is not needed.`}
        </Text>
      ) : (
        <>
          <dl className={classes["facts"]}>
            <dt>Detected</dt>
            <dd>{dialect.protocol}</dd>
            <dt>Evidence</dt>
            <dd>{dialect.evidence}</dd>
            <dt>Detected at</dt>
            <dd>
              <Timestamp at={dialect.decided_at} />
            </dd>
            <dt>Endpoint</dt>
            <dd>{dialect.url}</dd>
            {dialect.card_url !== null && (
              <>
                <dt>Card URL</dt>
                <dd>{dialect.card_url}</dd>
              </>
            )}
            <dt>Capabilities</dt>
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
                    <Table.Th>Probe</Table.Th>
                    <Table.Th>Response</Table.Th>
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
  if (streams && pushes) return "Streaming and push notifications";
  if (streams) return "Streaming";
  return pushes ? "Push notifications" : "Neither streaming nor push notifications";
}
