/** An inbox item: the question, its context, and the form to reply or to resolve it. */

import { Alert, Code, Group, Stack, Text } from "@mantine/core";
import { Clock } from "lucide-react";

import { AnchorLink } from "../app/links.tsx";
import { Timestamp, useNow } from "../app/Timestamp.tsx";
import { Claim } from "./Claim.tsx";
import { Comments } from "./Comments.tsx";
import classes from "./InboxItemForm.module.css";
import { KINDS } from "./itemKinds.ts";
import { ReplyForm } from "./ReplyForm.tsx";
import { TaskForm } from "./TaskForm.tsx";
import { ResolveForm } from "./ResolveForm.tsx";
import { RunInput } from "./RunInput.tsx";
import { schemaOf, type InboxItem } from "./queries.ts";
import { LinkedText } from "./LinkedText.tsx";

/**
 * `isOver`: the item is closed; an entered text stays visible.
 * `showsRun`: show the run, because the context does not.
 */
export function InboxItemForm({
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
      {!isOver && <Claim item={item} />}
      <div className={classes["asked"]} data-testid="question">
        <Text className={classes["words"]}>
          <LinkedText text={item.text} />
        </Text>
        {item.data !== null && schemaOf(item.data) === null && (
          <Code block className={classes["data"]} tabIndex={0} aria-label="Data of the question">
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
      {/* The key resets the form for another question of the same step. */}
      {item.kind === "outcome" || item.kind === "compensation" ? (
        <ResolveForm key={item.id} item={item} onDone={onDone} isOver={isOver} />
      ) : item.kind === "person" ? (
        <TaskForm key={item.id} item={item} onDone={onDone} isOver={isOver} />
      ) : (
        <ReplyForm key={item.id} item={item} onDone={onDone} isOver={isOver} />
      )}
      {!isOver && <Comments key={`${item.id}-comments`} item={item.id} heading={showsRun ? 3 : 4} />}
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
      <span>Attempt {item.attempt}</span>
      {item.protocol !== null && <span>{item.protocol}</span>}
      <span>
        Asked <Timestamp at={item.since} />
      </span>
      {item.due != null && (
        <span data-testid="task-due">
          Due <Timestamp at={item.due} />
        </span>
      )}
      {item.assignees !== undefined && item.assignees.length > 0 && (
        <span data-testid="task-assignees">For {item.assignees.join(", ")}</span>
      )}
    </Group>
  );
}

function Until({ at }: { at: string }) {
  const left = Date.parse(at) - useNow();
  return (
    <Alert variant="light" color="orange" icon={<Clock />} p="xs" data-testid="until">
      <Text size="sm">
        {left > 0
          ? `The step fails in ${roughDuration(left)} if there is no reply.`
          : "The deadline has passed. The step fails."}
      </Text>
    </Alert>
  );
}

function roughDuration(milliseconds: number): string {
  const minutes = Math.floor(milliseconds / 60_000);
  if (minutes < 1) return "less than a minute";
  if (minutes < 120) return `${minutes} min`;
  if (minutes < 2 * 24 * 60) return `${Math.floor(minutes / 60)} hours`;
  return `${Math.floor(minutes / (24 * 60))} days`;
}
