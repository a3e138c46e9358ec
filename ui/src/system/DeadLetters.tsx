/** The dead letters: messages that could not be read or applied. */

import { Button, Stack, Table, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { CircleCheck } from "lucide-react";

import { sizeOf } from "../app/bytes.ts";
import { AnchorLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { systemRoute } from "../app/router.tsx";
import { DeadLetterView } from "./DeadLetterView.tsx";
import { type DeadLetter, deadLettersQuery, type System } from "./queries.ts";
import classes from "./system.module.css";

export function DeadLetters({ system }: { system: System | undefined }) {
  const { letter } = systemRoute.useSearch();
  const query = useInfiniteQuery(deadLettersQuery);
  const letters = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap="md">
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {letter !== undefined && <DeadLetterView key={letter} id={letter} system={system} />}
      {query.isSuccess && letters.length === 0 && <NoLetters />}
      {letters.length > 0 && <LetterTable letters={letters} chosen={letter} />}
      {query.hasNextPage && (
        <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Load older dead letters
        </Button>
      )}
    </Stack>
  );
}

function NoLetters() {
  return (
    <div className={classes["empty"]} data-testid="no-letters">
      <CircleCheck size={20} aria-hidden />
      <div>
        <Text fw={600}>No dead letters.</Text>
        <Text size="sm" c="dimmed">
          Messages that cannot be read or applied are kept here until you replay or delete them.
        </Text>
      </div>
    </div>
  );
}

function LetterTable({ letters, chosen }: { letters: readonly DeadLetter[]; chosen: string | undefined }) {
  return (
    <Table.ScrollContainer minWidth={0}>
      <Table highlightOnHover verticalSpacing={6} data-testid="letters">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Reason</Table.Th>
            <Table.Th visibleFrom="xs">Topic / partition / offset</Table.Th>
            <Table.Th visibleFrom="md">Key</Table.Th>
            <Table.Th visibleFrom="sm" className={classes["number"]}>
              Size
            </Table.Th>
            <Table.Th>Received</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {letters.map((letter) => (
            <Table.Tr
              key={letter.id}
              data-testid="letter-row"
              aria-current={letter.id === chosen || undefined}
              className={classes["row"]}
            >
              <Table.Td className={classes["wrap"]}>
                <AnchorLink to="/system" search={{ tab: "letters", letter: letter.id }} fz="sm">
                  {letter.reason}
                </AnchorLink>
              </Table.Td>
              <Table.Td visibleFrom="xs" className={classes["wrap"]}>
                {letter.topic}/{letter.partition}/{letter.offset}
              </Table.Td>
              <Table.Td visibleFrom="md" className={classes["wrap"]}>
                {letter.key ?? "–"}
              </Table.Td>
              <Table.Td visibleFrom="sm" className={classes["number"]}>
                {sizeOf(letter.size)}
              </Table.Td>
              <Table.Td>
                <Timestamp at={letter.at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
