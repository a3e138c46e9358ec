/** One comparison: the differences between the outputs of source and target. */

import { Stack, Table, Text } from "@mantine/core";

import { textDifference } from "./textDifference.ts";
import classes from "./migration.module.css";
import type { Compared } from "./queries.ts";
import { pluralized } from "./labels.ts";

interface Difference {
  readonly path: string;
  readonly old: string | null;
  readonly new: string | null;
}

interface Comparison {
  readonly oldProtocol: string | null;
  readonly newProtocol: string | null;
  readonly oldError: string | null;
  readonly newError: string | null;
  readonly differences: readonly Difference[];
  /** The number of differences that were not stored. */
  readonly more: number;
}

export function readComparison(kept: Compared["comparison"]): Comparison {
  const differences = Array.isArray(kept["differences"]) ? (kept["differences"] as Record<string, unknown>[]) : [];
  return {
    oldProtocol: text(kept["old_protocol"]),
    newProtocol: text(kept["new_protocol"]),
    oldError: text(kept["old_error"]),
    newError: text(kept["new_error"]),
    differences: differences.map((each) => ({
      path: text(each["path"]) ?? "",
      old: text(each["old"]),
      new: text(each["new"]),
    })),
    more: typeof kept["more"] === "number" ? kept["more"] : 0,
  };
}

export function ComparisonDetail({ one }: { one: Compared }) {
  const { oldProtocol, newProtocol, oldError, newError, differences, more } = readComparison(one.comparison);
  const failed = oldError !== null || newError !== null;
  return (
    <Stack gap={4} data-testid="compared-answers">
      {differences.length === 0 && !failed ? (
        <Text size="sm">Source and target returned equivalent outputs.</Text>
      ) : (
        <Table verticalSpacing={4} layout="fixed">
          <Table.Thead>
            <Table.Tr>
              <Table.Th w="18%">Output path</Table.Th>
              <Table.Th>Source{oldProtocol === null ? "" : `, ${oldProtocol}`}</Table.Th>
              <Table.Th>Target{newProtocol === null ? "" : `, ${newProtocol}`}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {failed && (
              <Table.Tr>
                <Table.Th scope="row">Call</Table.Th>
                <Table.Td className={classes["value"]}>{oldError ?? "succeeded"}</Table.Td>
                <Table.Td className={classes["value"]}>{newError ?? "succeeded"}</Table.Td>
              </Table.Tr>
            )}
            {differences.map((difference) => (
              <DifferenceRow key={difference.path} difference={difference} />
            ))}
          </Table.Tbody>
        </Table>
      )}
      {more > 0 && (
        <Text size="sm" c="dimmed">
          {pluralized(more, "more difference")} {more === 1 ? "was" : "were"} not stored.
        </Text>
      )}
    </Stack>
  );
}

function DifferenceRow({ difference }: { difference: Difference }) {
  const { path, old, new: fresh } = difference;
  const { before, old: left, new: right, after } = textDifference(old ?? "", fresh ?? "");
  return (
    <Table.Tr data-testid="difference" data-path={path}>
      <Table.Th scope="row" className={classes["value"]}>
        {path || "/"}
      </Table.Th>
      <Table.Td className={classes["value"]}>
        {old === null ? (
          <Missing />
        ) : (
          <>
            {before}
            <del>{left}</del>
            {after}
          </>
        )}
      </Table.Td>
      <Table.Td className={classes["value"]}>
        {fresh === null ? (
          <Missing />
        ) : (
          <>
            {before}
            <ins>{right}</ins>
            {after}
          </>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function Missing() {
  return (
    <Text span size="xs" c="dimmed" ff="text">
      missing
    </Text>
  );
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
