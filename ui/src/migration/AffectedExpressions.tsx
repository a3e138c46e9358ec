/** Workflow expressions that would read a different value from the target's output. */

import { Code, Stack, Table, Text, Title } from "@mantine/core";

import { AnchorLink } from "../app/links.tsx";
import classes from "./migration.module.css";
import type { Entry } from "./queries.ts";

export function AffectedExpressions({ reads }: { reads: Entry["expressions"] }) {
  if (reads.length === 0) return null;
  return (
    <Stack gap={4} className={classes["scroll"]}>
      <Title order={2} size="h5">
        Expressions affected by the change
      </Title>
      <Text size="sm" c="dimmed">
        Review these expressions before the cutover. The target's output has a different shape there.
      </Text>
      <Table withTableBorder verticalSpacing={4} data-testid="changed-reads">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Workflow</Table.Th>
            <Table.Th>Location</Table.Th>
            <Table.Th>Expression</Table.Th>
            <Table.Th>Reason</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {reads.map((read, place) => (
            <Table.Tr key={place}>
              <Table.Td>
                <AnchorLink
                  to="/workflows/$workflow"
                  params={{ workflow: read.workflow }}
                  search={{ step: read.step }}
                  size="sm"
                >
                  {read.workflow}
                </AnchorLink>{" "}
                <Text span size="sm" c="dimmed">
                  v{read.version}
                </Text>
              </Table.Td>
              <Table.Td className={classes["mono"]}>{read.place}</Table.Td>
              <Table.Td>
                <Code>{read.expression}</Code>
              </Table.Td>
              <Table.Td>{read.why}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Stack>
  );
}
