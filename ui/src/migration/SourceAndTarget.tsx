/** The two sides of an agent beside each other: how each is called, and how its last calls have ended. */

import { Table, Text, Title } from "@mantine/core";
import { CircleCheck, CircleDashed, CircleX } from "lucide-react";
import type { ReactNode } from "react";

import { lasting, Timestamp } from "../app/Timestamp.tsx";
import classes from "./migration.module.css";
import type { Status } from "./queries.ts";
import { percentOf } from "./words.ts";

export function SourceAndTarget({ status }: { status: Status }) {
  const target = status.migration?.stage === "finished" ? null : (status.migration?.target ?? null);
  const { old, new: fresh } = status.calls;
  const rows: readonly (readonly [string, ReactNode, ReactNode])[] = [
    [
      "Speaks",
      <Mono key="old">{status.in_use ?? `${status.protocol}, not asked yet`}</Mono>,
      target && <Mono>{target.protocol}</Mono>,
    ],
    ["Address", <Mono key="old">{status.url}</Mono>, target && <Mono>{target.url}</Mono>],
    ["Options", null, target?.protocol_config == null ? null : <Mono>{JSON.stringify(target.protocol_config)}</Mono>],
    ["Last check", target === null ? <Checked status={status} /> : null, target && <Checked status={status} />],
    ["Last calls", calls(old), calls(fresh)],
    ["Failed", failed(old), failed(fresh)],
    ["Median", time(old?.median_ms), time(fresh?.median_ms)],
    ["Slowest", time(old?.slowest_ms), time(fresh?.slowest_ms)],
  ];
  const limits = status.migration?.limits;
  return (
    <section className={classes["scroll"]}>
      <Title order={2} size="h5" mb={4}>
        {target === null ? "How it is called" : "Both sides"}
      </Title>
      <Table withTableBorder w="auto" maw="60rem" verticalSpacing={4} data-testid="sides">
        <Table.Thead>
          <Table.Tr>
            <Table.Th aria-label="What" />
            <Table.Th>{target === null ? "Now" : "Old side"}</Table.Th>
            {target !== null && <Table.Th>New side</Table.Th>}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows
            .filter(([, left, right]) => left !== null || right !== null)
            .map(([name, left, right]) => (
              <Table.Tr key={name}>
                <Table.Th scope="row">{name}</Table.Th>
                <Table.Td data-testid={`old-${name.toLowerCase().replace(" ", "-")}`}>{left ?? "–"}</Table.Td>
                {target !== null && (
                  <Table.Td data-testid={`new-${name.toLowerCase().replace(" ", "-")}`}>{right ?? "–"}</Table.Td>
                )}
              </Table.Tr>
            ))}
        </Table.Tbody>
      </Table>
      {target !== null && limits !== undefined && (
        <Text size="xs" c="dimmed" mt={4} maw="60rem">
          It is rolled back by itself when more than {percentOf(limits.error_rate, 1)} of its last {limits.window} calls
          have failed (of {limits.calls} at least), or when 95 % of them take {limits.slowdown} times as long as the old
          side’s
          {limits.slowest_ms === null ? "" : `, or longer than ${lasting(limits.slowest_ms)}`}. At most{" "}
          {percentOf(limits.disagreement, 1)} of the compared answers may differ before a cutover.
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
  return milliseconds == null ? null : lasting(milliseconds);
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
            {check.passed ? "" : ", fails"}, <Timestamp at={check.at} />
          </>
        )}
      </span>
    </span>
  );
}
