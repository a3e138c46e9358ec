/** One thing that waits for a person, until it is answered here; somebody else may do so meanwhile. */

import { Button, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { Problem } from "../api/problem.ts";
import { AnchorLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { escapeBidi } from "../app/bidi.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { Answer } from "./Answer.tsx";
import { KINDS } from "./kinds.ts";
import classes from "./Question.module.css";
import { itemQuery, type InboxItem } from "./waiting.ts";

/** Where it is shown: in the inbox, or in a dialog of its run. */
export type Where = "inbox" | "run";

const HEADING: Readonly<Record<Where, 2 | 3>> = { inbox: 2, run: 3 };

export function Question({
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
    if (isGone) return <Gone run={id.split(".")[0]!} where={where} />;
    return query.error === null ? (
      <Loading lines={4} />
    ) : (
      <ProblemPanel error={query.error} again={() => void query.refetch()} />
    );
  }
  const gone = isGone && (
    <Gone run={item.run_id} where={where} isBegun={isBegun}>
      <NextQuestion item={item} onChoose={onChoose} />
    </Gone>
  );
  if (isGone && !isBegun) return gone;
  return (
    <Stack gap="xs" onInput={() => setBegun(true)}>
      {gone}
      <Title order={HEADING[where]} size="h4">
        {escapeBidi(KINDS[item.kind].title(item.agent))}
      </Title>
      <Answer
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

/** Whether what was asked for waits no more. */
export function isOver(error: Error | null): boolean {
  return error instanceof Problem && error.status === 404;
}

/** `isBegun`: what somebody has begun to write is still there, below. */
export function Gone({
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
        Nobody waits for this any more
      </Title>
      <Text size="sm">
        It was answered meanwhile, or its run has ended.{" "}
        {isBegun && "What you have written was not sent; it is still here, to be copied. "}
        {where === "inbox" && (
          <AnchorLink to="/runs/$run" params={{ run }} search={{}} underline="always" fz="sm">
            See the run
          </AnchorLink>
        )}
      </Text>
      {children}
    </Stack>
  );
}

/** What the same step asks now, if it asks again. */
function NextQuestion({ item, onChoose }: { item: InboxItem; onChoose: (item: string) => void }) {
  const next = useQuery(itemQuery(`${item.run_id}.${item.step}`)).data;
  if (next === undefined || next.id === item.id) return null;
  return (
    <div>
      <Text size="sm" mb={4}>
        The step asks again: “{next.text}”
      </Text>
      <Button size="xs" onClick={() => onChoose(next.id)} data-testid="next-question">
        Answer this one
      </Button>
    </div>
  );
}
