/** The shadow comparisons of an agent, and the details of one. */

import { Button, Group, SegmentedControl, Stack, Table, Text, Title, UnstyledButton } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { ChevronDown, ChevronRight, CircleCheck, CircleHelp, CircleX } from "lucide-react";
import { Fragment } from "react";

import { AnchorLink } from "../app/links.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { ComparisonDetail, readComparison } from "./ComparisonDetail.tsx";
import classes from "./migration.module.css";
import { comparisonsQuery, type Compared, type Verdict } from "./queries.ts";
import { pluralized, VERDICT_ORDER, VERDICTS } from "./labels.ts";

interface Props {
  readonly agent: string;
  readonly counts: Partial<Record<Verdict, number>>;
  readonly verdict: Verdict | undefined;
  readonly selected: string | undefined;
  readonly onSelect: (selected: { verdict: Verdict | undefined; comparison: string | undefined }) => void;
}

export function Comparisons({ agent, counts, verdict, selected, onSelect }: Props) {
  const query = useInfiniteQuery(comparisonsQuery(agent, verdict));
  const found = query.data?.pages.flatMap((page) => page.items) ?? [];
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (query.isSuccess && found.length === 0 && verdict === undefined) return null;
  const choices = VERDICT_ORDER.filter((each) => (counts[each] ?? 0) > 0 || each === verdict);
  return (
    <Stack gap={6} id="comparisons" className={classes["anchored"]} data-testid="comparisons">
      <Group gap="sm">
        <Title order={2} size="h5">
          Shadow comparisons
        </Title>
        <Text size="sm" c="dimmed">
          {pluralized(all, "comparison")} since shadowing started
        </Text>
      </Group>
      {choices.length > 0 && (
        <SegmentedControl
          size="xs"
          aria-label="Verdict"
          className={classes["verdicts"]}
          value={verdict ?? "all"}
          onChange={(value) => onSelect({ verdict: value === "all" ? undefined : value, comparison: undefined })}
          data={[
            { value: "all", label: "All" },
            ...choices.map((each) => ({ value: each, label: `${VERDICTS[each]} (${counts[each] ?? 0})` })),
          ]}
        />
      )}
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isSuccess && found.length === 0 && <Text size="sm">No comparisons with this verdict.</Text>}
      {found.length > 0 && (
        <div className={classes["scroll"]}>
          <Table withTableBorder verticalSpacing={4}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Verdict</Table.Th>
                <Table.Th>Run and step</Table.Th>
                <Table.Th>Differences</Table.Th>
                <Table.Th>Time</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {found.map((one) => (
                <Fragment key={one.id}>
                  <Row
                    one={one}
                    opened={one.id === selected}
                    onOpen={() => onSelect({ verdict, comparison: one.id === selected ? undefined : one.id })}
                  />
                  {one.id === selected && (
                    <Table.Tr>
                      <Table.Td colSpan={4}>
                        <ComparisonDetail one={one} />
                      </Table.Td>
                    </Table.Tr>
                  )}
                </Fragment>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      )}
      {query.hasNextPage && (
        <Button
          variant="default"
          size="xs"
          w="fit-content"
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          Load older comparisons
        </Button>
      )}
    </Stack>
  );
}

const ICONS = {
  agree: CircleCheck,
  differ: CircleX,
  new_failed: CircleX,
  old_failed: CircleHelp,
  both_failed: CircleHelp,
};
const COLORS: Record<Verdict, string> = {
  agree: "var(--status-completed)",
  differ: "var(--status-failed)",
  new_failed: "var(--status-failed)",
  old_failed: "var(--status-waiting)",
  both_failed: "var(--status-waiting)",
};

function Row({ one, opened, onOpen }: { one: Compared; opened: boolean; onOpen: () => void }) {
  const Icon = ICONS[one.verdict];
  const Chevron = opened ? ChevronDown : ChevronRight;
  return (
    <Table.Tr data-testid="comparison" data-verdict={one.verdict}>
      <Table.Td>
        <UnstyledButton
          className={classes["line"]}
          onClick={onOpen}
          aria-expanded={opened}
          data-testid="open-comparison"
        >
          <Chevron size={14} aria-hidden />
          <Icon size={14} aria-hidden color={COLORS[one.verdict]} />
          <Text span size="sm">
            {VERDICTS[one.verdict]}
          </Text>
        </UnstyledButton>
      </Table.Td>
      <Table.Td>
        <AnchorLink to="/runs/$run" params={{ run: one.run }} search={{ step: one.step }} className={classes["mono"]}>
          {one.run} {one.step}
        </AnchorLink>
      </Table.Td>
      <Table.Td className={classes["mono"]}>{summaryOf(one)}</Table.Td>
      <Table.Td>
        <Timestamp at={one.at} />
      </Table.Td>
    </Table.Tr>
  );
}

const SHOWN_PATHS = 3;

function summaryOf(one: Compared): string {
  const { differences, more } = readComparison(one.comparison);
  const rest = differences.length - SHOWN_PATHS + more;
  const paths = differences.slice(0, SHOWN_PATHS).map(({ path }) => path || "/");
  return paths.length === 0 ? "–" : `${paths.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}
