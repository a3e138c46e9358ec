/** Asks before many runs are cancelled or retried, says how many, and shows how it went for each. */

import { Alert, Button, Group, List, Modal, Progress, Radio, Stack, Text } from "@mantine/core";
import { PhoneCall } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { AnchorLink } from "../../app/links.tsx";
import { wordsOf } from "../actions/runCommands.ts";
import { type BulkWish, type Failure, isUnclear, meant, type Progress as Went, useBulk } from "./bulk.ts";
import classes from "./list.module.css";
import type { Run } from "./useRuns.ts";
import { counted, named } from "./words.ts";

const MOST_AGENTS = 6;
const DONE: Readonly<Record<BulkWish, string>> = {
  cancel: "asked to cancel",
  retry: "retried",
  restart: "retried",
};

export function BulkDialog({
  wish,
  runs,
  onClose,
}: {
  wish: "cancel" | "retry";
  runs: readonly Run[];
  /** The runs that stay ticked; null: as it was. */
  onClose: (left: readonly Run[] | null) => void;
}) {
  const { progress, go, stop } = useBulk();
  const [whole, setWhole] = useState(meant("retry", runs).length === 0);
  const asked: BulkWish = wish === "cancel" ? "cancel" : whole ? "restart" : "retry";
  const chosen = meant(asked, runs);
  const isGoing = progress.state === "going";
  const isOver = progress.state === "over" || progress.state === "stopped";
  const left = [...progress.failures.map(({ run }) => run), ...progress.unasked];
  const close = () => {
    if (isGoing) stop();
    else onClose(isOver ? left : null);
  };
  return (
    <Modal
      opened
      onClose={close}
      closeOnClickOutside={!isGoing}
      title={
        progress.state === "ready"
          ? `${wish === "cancel" ? "Cancel" : "Retry"} ${counted(chosen.length, "run")}?`
          : wish === "cancel"
            ? "Cancelling runs"
            : "Retrying runs"
      }
      transitionProps={{ duration: 0 }}
    >
      <Stack gap="sm" data-testid="bulk-dialog">
        {progress.state === "ready" ? (
          <>
            {wish === "cancel" ? (
              <Cancelling />
            ) : (
              <Retrying chosen={chosen} runs={runs} whole={whole} onWhole={setWhole} />
            )}
            {chosen.length < runs.length && (
              <LeftAlone wish={asked} number={runs.length - chosen.length} of={runs.length} />
            )}
          </>
        ) : (
          <Going went={progress} wish={asked} />
        )}
        <Group justify="flex-end" gap="sm">
          {progress.state === "ready" && (
            <>
              <Button variant="default" onClick={close} data-autofocus>
                {wish === "cancel" ? "Keep them running" : "Do not retry"}
              </Button>
              <Button
                {...(wish === "cancel" ? { color: "red.9" } : {})}
                disabled={chosen.length === 0}
                onClick={() => void go(asked, chosen)}
                data-testid="confirm-bulk"
              >
                {wish === "cancel"
                  ? `Cancel ${counted(chosen.length, "run")}`
                  : `Start ${counted(chosen.length, "new run")}`}
              </Button>
            </>
          )}
          {isGoing && (
            <Button variant="default" onClick={stop} data-testid="stop-bulk">
              Stop
            </Button>
          )}
          {isOver && (
            <Button {...(left.length > 0 ? { variant: "default" } : {})} onClick={close} data-testid="close-bulk">
              Close
            </Button>
          )}
          {isOver && left.length > 0 && (
            <Button onClick={() => void go(asked, left)} data-testid="bulk-again">
              {progress.state === "stopped"
                ? `Go on with ${counted(left.length, "run")}`
                : `Try ${counted(left.length, "run")} again`}
            </Button>
          )}
        </Group>
      </Stack>
    </Modal>
  );
}

function Cancelling() {
  return (
    <>
      <Text size="sm">Agents that can be told to stop are told. What they have done already stays done.</Text>
      <Text size="sm">
        A cancelled run does not go on. It can be retried as a new run, which keeps what was completed.
      </Text>
    </>
  );
}

function Retrying({
  chosen,
  runs,
  whole,
  onWhole,
}: {
  chosen: readonly Run[];
  runs: readonly Run[];
  whole: boolean;
  onWhole: (whole: boolean) => void;
}) {
  const agents = [...new Set(chosen.flatMap((run) => run.agents))].sort();
  const unfinished = meant("retry", runs).length;
  return (
    <>
      <Text size="sm">
        Each retry is a new run with an id of its own, with the same input. The runs before stay as they are.
      </Text>
      <Radio.Group
        label="What runs again"
        value={whole ? "all" : "rest"}
        onChange={(value) => onWhole(value === "all")}
      >
        <Stack gap="xs" mt="xs">
          <Radio
            value="rest"
            label="What did not complete"
            description={
              unfinished === 0
                ? "All of these runs have completed."
                : `In ${counted(unfinished, "run")} that failed or were cancelled; completed outputs are kept.`
            }
            disabled={unfinished === 0}
            data-testid="bulk-rest"
          />
          <Radio
            value="all"
            label="Everything"
            description="Nothing is kept; completed runs are run again, too."
            data-testid="bulk-all"
          />
        </Stack>
      </Radio.Group>
      <Alert
        variant="light"
        color="orange"
        icon={<PhoneCall />}
        title="Agents are called again"
        styles={{ title: { color: "var(--mantine-color-text)" } }}
        data-testid="bulk-consequences"
      >
        <Text size="sm">
          {agents.length === 0
            ? "Steps of other workflows run again, and with them their agents."
            : `They may repeat work that they have done before: ${named(agents, MOST_AGENTS)}.`}
        </Text>
      </Alert>
    </>
  );
}

function LeftAlone({ wish, number, of }: { wish: BulkWish; number: number; of: number }) {
  const why = {
    cancel: "ended already or are being cancelled",
    retry: "have completed or have not ended yet",
    restart: "have not ended yet",
  }[wish];
  return (
    <Text size="sm" c="dimmed" data-testid="left-alone">
      {number} of the {of} selected {why}, and {number === 1 ? "is" : "are"} left alone.
    </Text>
  );
}

function Going({ went, wish }: { went: Went; wish: BulkWish }) {
  const well = went.done - went.failures.length;
  const isOver = went.state !== "going";
  const place = useRef<HTMLDivElement>(null);
  // The button that was pressed is there no more: without this the keyboard would be outside of the dialog.
  useEffect(() => place.current?.focus(), [isOver]);
  return (
    <Stack gap="xs" ref={place} tabIndex={-1} className={classes["went"]}>
      <Progress value={(100 * went.done) / went.of} aria-label="Runs asked" />
      <Text size="sm" role="status" data-testid="bulk-progress">
        {isOver
          ? `${counted(well, "run")} ${DONE[wish]}${went.failures.length > 0 ? `, ${went.failures.length} not` : ""}.`
          : `${went.done} of ${went.of}…`}
        {went.state === "stopped" &&
          ` Stopped: ${went.unasked.length} ${went.unasked.length === 1 ? "was" : "were"} not asked.`}
      </Text>
      {went.failures.length > 0 && <Failures failures={went.failures} />}
      {isOver && went.failures.length + went.unasked.length > 0 && (
        <Text size="sm" c="dimmed" data-testid="bulk-left">
          {went.failures.length + went.unasked.length === 1 ? "It stays selected." : "They stay selected."}
          {wish !== "cancel" &&
            went.failures.some(({ error }) => isUnclear(error)) &&
            " A retry without an answer may have begun all the same: tried again, it does not begin twice."}
        </Text>
      )}
    </Stack>
  );
}

function Failures({ failures }: { failures: readonly Failure[] }) {
  return (
    <List
      size="sm"
      spacing="xs"
      className={classes["failures"]}
      listStyleType="none"
      aria-label="Runs for which it failed"
      data-testid="bulk-failures"
    >
      {failures.map(({ run, error }) => (
        <List.Item key={run.id} data-testid="bulk-failure">
          <AnchorLink to="/runs/$run" params={{ run: run.id }} search={{}} size="sm" ff="monospace">
            {run.id}
          </AnchorLink>
          <Text size="sm">{wordsOf(error)}</Text>
        </List.Item>
      ))}
    </List>
  );
}
