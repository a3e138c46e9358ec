/** One thing that waits for a person: what is asked, by whom, and the means to answer it. */

import { Alert, Code, Group, Stack, Text } from "@mantine/core";
import { Clock } from "lucide-react";

import { AnchorLink } from "../app/links.tsx";
import { Timestamp, useNow } from "../app/Timestamp.tsx";
import classes from "./Answer.module.css";
import { KINDS } from "./kinds.ts";
import { ReplyForm } from "./ReplyForm.tsx";
import { ResolveForm } from "./ResolveForm.tsx";
import { RunInput } from "./RunInput.tsx";
import { schemaOf, type InboxItem } from "./waiting.ts";
import { LinkedText } from "./LinkedText.tsx";

/**
 * `isOver`: nobody waits for the answer any more; what was written is still there to be read.
 * `showsRun`: which run asks is not to be seen beside it.
 */
export function Answer({
  item,
  onDone,
  isOver = false,
  showsRun,
}: {
  readonly item: InboxItem;
  readonly onDone: () => void;
  readonly isOver?: boolean;
  readonly showsRun: boolean;
}) {
  return (
    <Stack gap="md" data-testid="answer">
      <Stack gap={4}>
        <Facts item={item} showsRun={showsRun} />
        {showsRun && <RunInput run={item.run_id} />}
      </Stack>
      <div className={classes["asked"]} data-testid="question">
        <Text className={classes["words"]}>
          <LinkedText text={item.text} />
        </Text>
        {item.data !== null && schemaOf(item.data) === null && (
          <Code block className={classes["data"]} tabIndex={0} aria-label="What came with the question">
            {JSON.stringify(item.data, null, 2)}
          </Code>
        )}
      </div>
      {item.until !== null && !isOver && <Until at={item.until} />}
      {!isOver && (
        <Text size="sm" c="dimmed" data-testid="what-next">
          {KINDS[item.kind].next(item.agent, item.step)}
        </Text>
      )}
      {/* Another question of the same step begins with an empty form. */}
      {item.kind === "outcome" ? (
        <ResolveForm key={item.id} item={item} onDone={onDone} isOver={isOver} />
      ) : (
        <ReplyForm key={item.id} item={item} onDone={onDone} isOver={isOver} />
      )}
    </Stack>
  );
}

function Facts({ item, showsRun }: { item: InboxItem; showsRun: boolean }) {
  return (
    <Group gap="2px 16px" fz="sm" c="dimmed">
      <span>
        Step{" "}
        <AnchorLink
          to="/runs/$run"
          params={{ run: item.run_id }}
          search={{ step: item.step }}
          fz="sm"
          underline="always"
          data-testid="to-run"
        >
          {item.step}
        </AnchorLink>{" "}
        of {item.workflow.name} v{item.workflow.version}
      </span>
      {showsRun && (
        <span>
          Run{" "}
          <AnchorLink
            to="/runs/$run"
            params={{ run: item.run_id }}
            search={{}}
            fz="sm"
            ff="monospace"
            underline="always"
            data-testid="run-id"
          >
            {item.run_id}
          </AnchorLink>
        </span>
      )}
      <span>attempt {item.attempt}</span>
      {item.protocol !== null && <span>{item.protocol}</span>}
      <span>
        asked <Timestamp at={item.since} />
      </span>
    </Group>
  );
}

function Until({ at }: { at: string }) {
  const left = Date.parse(at) - useNow();
  return (
    <Alert variant="light" color="orange" icon={<Clock />} p="xs" data-testid="until">
      <Text size="sm">
        {left > 0
          ? `Without an answer the step fails in ${lastingWords(left)}.`
          : "The time to answer is over: the step fails."}
      </Text>
    </Alert>
  );
}

function lastingWords(milliseconds: number): string {
  const minutes = Math.floor(milliseconds / 60_000);
  if (minutes < 1) return "less than a minute";
  if (minutes < 120) return `${minutes} min`;
  if (minutes < 2 * 24 * 60) return `${Math.floor(minutes / 60)} hours`;
  return `${Math.floor(minutes / (24 * 60))} days`;
}
