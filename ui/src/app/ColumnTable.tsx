/** A table with column headings for custom rows. It scrolls sideways on narrow screens. */

import { Table } from "@mantine/core";
import type { ReactNode } from "react";

// Pixels; in a narrower table, words in cells would be broken.
const NARROWEST = 560;

export function ColumnTable({
  columns,
  testid,
  children,
}: {
  columns: readonly string[];
  testid: string;
  children: ReactNode;
}) {
  return (
    <Table.ScrollContainer minWidth={NARROWEST}>
      <Table highlightOnHover verticalSpacing={6} data-testid={testid}>
        <Table.Thead>
          <Table.Tr>
            {columns.map((name) => (
              <Table.Th key={name}>{name}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
