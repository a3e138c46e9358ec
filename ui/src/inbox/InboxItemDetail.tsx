/** An inbox item until it is closed, here or by another person. */

import { Button, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { Problem } from "../api/problem.ts";
import { AnchorLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { escapeBidi } from "../app/bidi.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { InboxItemForm } from "./InboxItemForm.tsx";
import { KINDS } from "./itemKinds.ts";
import classes from "./InboxItemDetail.module.css";
import { itemQuery, type InboxItem } from "./queries.ts";

/** Where it is shown: in the inbox, or in a dialog on the run page. */
export type Where = "inbox" | "run";

const HEADING: Readonly<Record<Where, 2 | 3>> = { inbox: 2, run: 3 };

export function InboxItemDetail({
  id,
  where,
  onDone,
  onChoose,
}: {
  readonly id: string;
  readonly where: Where;
  readonly onDone: () => void;
  readonly onChoose: (item: string) => void;
}) {
  const query = useQuery(itemQuery(id));
  const [isBegun, setBegun] = useState(false);
  const [isAnswered, setAnswered] = useState(false);
  const item = query.data;
  const isGone = !isAnswered && isOver(query.error);
  if (item === undefined) {
    if (isGone) return <ClosedItem run={id.split(".")[0]!} where={where} />;
    return query.error === null ? (
      <Loading lines={4} />
    ) : (
      <ProblemPanel error={query.error} again={() => void query.refetch()} />
    );
  }
  const gone = isGone && (
    <ClosedItem run={item.run_id} where={where} isBegun={isBegun}>
      <NextQuestion item={item} onChoose={onChoose} />
    </ClosedItem>
  );
  if (isGone && !isBegun) return gone;
  return (
    <Stack gap="xs" onInput={() => setBegun(true)}>
      {gone}
      <Title order={HEADING[where]} size="h4">
        {escapeBidi(item.title ?? KINDS[item.kind].title(item.agent))}
      </Title>
      <InboxItemForm
        item={item}
        onDone={() => {
          setAnswered(true);
          onDone();
        }}
        isOver={isGone}
        showsRun={where === "inbox"}
      />
    </Stack>
  );
}

/** Whether the item is closed. */
export function isOver(error: Error | null): boolean {
  return error instanceof Problem && error.status === 404;
}

/** `isBegun`: the user has started to enter a reply, which is still shown below. */
export function ClosedItem({
  run,
  where,
  isBegun = false,
  children,
}: {
  readonly run: string;
  readonly where: Where;
  readonly isBegun?: boolean;
  readonly children?: ReactNode;
}) {
  return (
    <Stack gap="xs" role="status" {...(isBegun ? { className: classes["gone"]! } : {})} data-testid="inbox-gone">
      <Title order={HEADING[where]} size="h4">
        This item is closed
      </Title>
      <Text size="sm">
        Someone else has responded, or the run has ended.{" "}
        {isBegun && "Your reply was not sent. You can still copy it below. "}
        {where === "inbox" && (
          <AnchorLink to="/runs/$run" params={{ run }} search={{}} underline="always" fz="sm">
            View run
          </AnchorLink>
        )}
      </Text>
      {children}
    </Stack>
  );
}

/** The next question of the same step. */
function NextQuestion({ item, onChoose }: { item: InboxItem; onChoose: (item: string) => void }) {
  const next = useQuery(itemQuery(`${item.run_id}.${item.step}`)).data;
  if (next === undefined || next.id === item.id) return null;
  return (
    <div>
      <Text size="sm" mb={4}>
        The step has a new question: “{next.text}”
      </Text>
      <Button size="xs" onClick={() => onChoose(next.id)} data-testid="next-question">
        Open the new question
      </Button>
    </div>
  );
}
