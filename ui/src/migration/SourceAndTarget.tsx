/** The source and the target of a migration, side by side, with their recent calls. */

import { Table, Text, Title } from "@mantine/core";
import { CircleCheck, CircleDashed, CircleX } from "lucide-react";
import type { ReactNode } from "react";

import { formatDuration, Timestamp } from "../app/Timestamp.tsx";
import classes from "./migration.module.css";
import type { Status } from "./queries.ts";
import { percentOf } from "./labels.ts";

export function SourceAndTarget({ status }: { status: Status }) {
  const target = status.migration?.stage === "finished" ? null : (status.migration?.target ?? null);
  const { old, new: fresh } = status.calls;
  const rows: readonly (readonly [string, ReactNode, ReactNode])[] = [
    [
      "Protocol",
      <Mono key="old">{status.in_use ?? `${status.protocol}, not detected yet`}</Mono>,
      target && <Mono>{target.protocol}</Mono>,
    ],
    ["URL", <Mono key="old">{status.url}</Mono>, target && <Mono>{target.url}</Mono>],
    ["Options", null, target?.protocol_config == null ? null : <Mono>{JSON.stringify(target.protocol_config)}</Mono>],
    ["Last check", target === null ? <Checked status={status} /> : null, target && <Checked status={status} />],
    ["Recent calls", calls(old), calls(fresh)],
    ["Failed", failed(old), failed(fresh)],
    ["Median latency", time(old?.median_ms), time(fresh?.median_ms)],
    ["Max latency", time(old?.slowest_ms), time(fresh?.slowest_ms)],
  ];
  const limits = status.migration?.limits;
  return (
    <section className={classes["scroll"]}>
      <Title order={2} size="h5" mb={4}>
        {target === null ? "Endpoint" : "Source and target"}
      </Title>
      <Table withTableBorder w="auto" maw="60rem" verticalSpacing={4} data-testid="sides">
        <Table.Thead>
          <Table.Tr>
            <Table.Th aria-label="Property" />
            <Table.Th>{target === null ? "Current" : "Source"}</Table.Th>
            {target !== null && <Table.Th>Target</Table.Th>}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows
            .filter(([, left, right]) => left !== null || right !== null)
            .map(([name, left, right]) => (
              <Table.Tr key={name}>
                <Table.Th scope="row">{name}</Table.Th>
                <Table.Td data-testid={`source-${name.toLowerCase().replace(" ", "-")}`}>{left ?? "–"}</Table.Td>
                {target !== null && (
                  <Table.Td data-testid={`target-${name.toLowerCase().replace(" ", "-")}`}>{right ?? "–"}</Table.Td>
                )}
              </Table.Tr>
            ))}
        </Table.Tbody>
      </Table>
      {target !== null && limits !== undefined && (
        <Text size="xs" c="dimmed" mt={4} maw="60rem">
          The agent is rolled back automatically when more than {percentOf(limits.error_rate, 1)} of the target’s last{" "}
          {limits.window} calls failed (after at least {limits.calls} calls), or when its 95th percentile latency is{" "}
          {limits.slowdown} times that of the source
          {limits.slowest_ms === null ? "" : `, or above ${formatDuration(limits.slowest_ms)}`}. Before a cutover, at
          most {percentOf(limits.disagreement, 1)} of the comparisons may differ.
        </Text>
      )}
    </section>
  );
}

type Calls = Status["calls"]["old"];

function calls(side: Calls): ReactNode {
  return side === undefined ? null : side.calls;
}

function failed(side: Calls): ReactNode {
  return side === undefined ? null : `${side.failed} (${percentOf(side.failed, side.calls)})`;
}

function time(milliseconds: number | null | undefined): ReactNode {
  return milliseconds == null ? null : formatDuration(milliseconds);
}

function Mono({ children }: { children: ReactNode }) {
  return <span className={classes["mono"]}>{children}</span>;
}

function Checked({ status }: { status: Status }) {
  const check = status.last_check;
  const Icon = check === null ? CircleDashed : check.passed ? CircleCheck : CircleX;
  const color =
    check === null ? "var(--status-pending)" : check.passed ? "var(--status-completed)" : "var(--status-failed)";
  return (
    <span className={classes["line"]} data-testid="grade">
      <Icon size={14} aria-hidden color={color} />
      <span>
        {check === null ? (
          "Not checked"
        ) : (
          <>
            Grade {check.grade}
            {check.passed ? "" : ", failed"}, <Timestamp at={check.at} />
          </>
        )}
      </span>
    </span>
  );
}
