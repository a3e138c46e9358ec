/** The lag of the Kafka consumer groups. */

import { Table, Text } from "@mantine/core";
import { TriangleAlert } from "lucide-react";

import type { Consumers } from "./queries.ts";
import classes from "./system.module.css";
import { consumersLabel } from "./labels.ts";

export function ConsumerLag({ consumers }: { consumers: readonly Consumers[] }) {
  // If Kafka is unreachable, all groups report the same error.
  const problems = new Set(consumers.map(({ detail }) => detail).filter((detail) => detail !== null));
  return (
    <>
      {[...problems].map((problem) => (
        <div key={problem} className={classes["trouble"]} data-testid="consumers-trouble">
          <TriangleAlert size={16} aria-hidden />
          <Text size="sm" className={classes["wrap"]}>
            {problem}
          </Text>
        </div>
      ))}
      <Table.ScrollContainer minWidth={0}>
        <Table verticalSpacing={6} data-testid="consumers">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Topic</Table.Th>
              <Table.Th>Consumers</Table.Th>
              <Table.Th className={classes["number"]} visibleFrom="xs">
                Partitions
              </Table.Th>
              <Table.Th className={classes["number"]}>Lag</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {consumers.map((each) => (
              <Table.Tr key={each.group} data-testid="consumer-group" data-topic={each.topic}>
                <Table.Td className={classes["wrap"]}>{each.topic}</Table.Td>
                <Table.Td className={classes["wrap"]}>
                  {consumersLabel(each)}
                  <Text size="xs" c="dimmed">
                    group {each.group}
                  </Text>
                </Table.Td>
                <Table.Td className={classes["number"]} visibleFrom="xs">
                  {shown(each.partitions)}
                </Table.Td>
                <Table.Td className={classes["number"]} data-testid="waiting">
                  {shown(each.waiting)}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </>
  );
}

function shown(count: number | null): string {
  return count === null ? "unknown" : count.toLocaleString("en");
}
