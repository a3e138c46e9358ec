/** The current readiness, processes, runs and queues. */

import { Stack, Table, Text, Title } from "@mantine/core";
import { CircleCheck, CircleX, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";

import { AnchorLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { StatusBadge } from "../app/StatusBadge.tsx";
import type { RunStatus } from "../runs/model.ts";
import { ConsumerLag } from "./ConsumerLag.tsx";
import type { Count, Process, System } from "./queries.ts";
import classes from "./system.module.css";
import { counted, QUEUES } from "./labels.ts";

export function Overview({ system }: { system: System | undefined }) {
  if (system === undefined) return <Loading />;
  return (
    <Stack gap="lg">
      {system.warnings.length > 0 && (
        <section className={classes["warnings"]} data-testid="warnings">
          <TriangleAlert size={18} aria-hidden />
          <div>
            <Title order={2} size="h6">
              Warnings
            </Title>
            {system.warnings.map((warning) => (
              <Text key={warning} size="sm">
                {warning}
              </Text>
            ))}
          </div>
        </section>
      )}
      <Section title="Readiness">
        <Readiness system={system} />
      </Section>
      <Section title="Processes">
        {system.processes === null ? <Unknown /> : <Processes processes={system.processes} />}
      </Section>
      {system.consumers !== null && (
        <Section title="Kafka">
          <ConsumerLag consumers={system.consumers} />
        </Section>
      )}
      <div className={classes["halves"]}>
        <Section title="Runs">{system.runs === null ? <Unknown /> : <Runs runs={system.runs} />}</Section>
        <Section title="Queues">
          {system.queues === null ? <Unknown /> : <Queues queues={system.queues} broker={system.broker} />}
        </Section>
      </div>
    </Stack>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <Title order={2} size="h5" mb={6}>
        {title}
      </Title>
      {children}
    </section>
  );
}

function Unknown() {
  return (
    <Text size="sm" c="dimmed">
      Not available: the store is unreachable.
    </Text>
  );
}

const NAMES: Record<string, string> = { store: "Store", broker: "Broker" };

function Readiness({ system }: { system: System }) {
  return (
    <ul className={classes["dependencies"]} data-testid="dependencies">
      {system.dependencies.map(({ name, ok, detail }) => (
        <li key={name} className={classes["dependency"]} data-ok={ok}>
          {ok ? <CircleCheck size={18} aria-hidden /> : <CircleX size={18} aria-hidden />}
          <div>
            <Text size="sm" fw={600}>
              {NAMES[name] ?? name} {ok ? "ready" : "not available"}
            </Text>
            {detail !== null && (
              <Text size="sm" className={classes["wrap"]}>
                {detail}
              </Text>
            )}
          </div>
        </li>
      ))}
    </ul>
  );
}

function Processes({ processes }: { processes: readonly Process[] }) {
  return (
    <Table.ScrollContainer minWidth={0}>
      <Table verticalSpacing={6} data-testid="processes">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Process</Table.Th>
            <Table.Th>Status</Table.Th>
            <Table.Th>Roles</Table.Th>
            <Table.Th visibleFrom="sm">Version</Table.Th>
            <Table.Th visibleFrom="xs">Started</Table.Th>
            <Table.Th visibleFrom="sm">Last seen</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {processes.map((process) => (
            <Table.Tr key={process.id} data-testid="process" data-alive={process.alive}>
              <Table.Td className={classes["wrap"]}>
                {process.name}
                {process.this && (
                  <Text size="xs" c="dimmed">
                    serves this page
                  </Text>
                )}
              </Table.Td>
              <Table.Td>
                <span className={classes["state"]} data-ok={process.alive}>
                  {process.alive ? <CircleCheck size={15} aria-hidden /> : <CircleX size={15} aria-hidden />}
                  {process.alive ? "Alive" : "No heartbeat"}
                </span>
              </Table.Td>
              <Table.Td>
                {process.roles.join(", ")}
                {process.pool !== null && (
                  <Text size="xs" c="dimmed">
                    pool {process.pool}
                  </Text>
                )}
              </Table.Td>
              <Table.Td visibleFrom="sm">{process.version}</Table.Td>
              <Table.Td visibleFrom="xs">
                <Timestamp at={process.started_at} />
              </Table.Td>
              <Table.Td visibleFrom="sm">
                <Timestamp at={process.seen_at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Runs({ runs }: { runs: readonly Count[] }) {
  return (
    <Table verticalSpacing={4} data-testid="run-counts">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Status</Table.Th>
          <Table.Th className={classes["number"]}>Runs</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {runs.map((each) => (
          <Table.Tr key={each.name} data-name={each.name}>
            <Table.Td>
              <StatusBadge status={each.name as RunStatus} />
            </Table.Td>
            <Table.Td className={classes["number"]}>
              {each.count === 0 ? (
                "0"
              ) : (
                <AnchorLink
                  to="/runs"
                  search={{ status: each.name, children: true }}
                  underline="always"
                  fz="sm"
                  aria-label={`${counted(each)} runs: ${each.name.toLowerCase()}`}
                >
                  {counted(each)}
                </AnchorLink>
              )}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

// Without Kafka, messages are passed within store transactions, and these queues are always empty.
const BROKER_QUEUES = new Set(["outbox", "dispatches"]);

function Queues({ queues, broker }: { queues: readonly Count[]; broker: System["broker"] }) {
  return (
    <Table verticalSpacing={4} data-testid="queues">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Queue</Table.Th>
          <Table.Th className={classes["number"]}>Entries</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {queues
          .filter(({ name }) => broker === "kafka" || !BROKER_QUEUES.has(name))
          .map((each) => {
            const { name, meaning, worrying } = QUEUES[each.name] ?? { name: each.name, meaning: "" };
            return (
              <Table.Tr key={each.name} data-name={each.name}>
                <Table.Td>
                  <Text size="sm">{name}</Text>
                  <Text size="xs" c="dimmed">
                    {meaning}
                  </Text>
                </Table.Td>
                <Table.Td className={classes["number"]}>
                  {worrying && each.count > 0 && (
                    <TriangleAlert size={14} aria-label="Needs attention" className={classes["worry"]} />
                  )}
                  {counted(each)}
                </Table.Td>
              </Table.Tr>
            );
          })}
      </Table.Tbody>
    </Table>
  );
}
