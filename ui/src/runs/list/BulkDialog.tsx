/** Asks for confirmation before many runs are cancelled or retried, and shows the results. */

import { Alert, Button, Group, List, Modal, Progress, Radio, Stack, Text } from "@mantine/core";
import { PhoneCall } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { AnchorLink } from "../../app/links.tsx";
import { errorMessage } from "../actions/runCommands.ts";
import { type BulkAction, type Failure, isUnclear, meant, type Progress as Went, useBulk } from "./bulk.ts";
import classes from "./list.module.css";
import type { Run } from "./useRuns.ts";
import { counted, named } from "./formatCounts.ts";

const MOST_AGENTS = 6;
const DONE: Readonly<Record<BulkAction, string>> = {
  cancel: "being cancelled",
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
  /** The runs that stay selected; null keeps the selection. */
  onClose: (left: readonly Run[] | null) => void;
}) {
  const { progress, go, stop } = useBulk();
  const [whole, setWhole] = useState(meant("retry", runs).length === 0);
  const asked: BulkAction = wish === "cancel" ? "cancel" : whole ? "restart" : "retry";
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
              <SkippedRuns wish={asked} number={runs.length - chosen.length} of={runs.length} />
            )}
          </>
        ) : (
          <BulkProgress went={progress} wish={asked} />
        )}
        <Group justify="flex-end" gap="sm">
          {progress.state === "ready" && (
            <>
              <Button variant="default" onClick={close} data-autofocus>
                {wish === "cancel" ? "Keep running" : "Cancel"}
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
                ? `Continue with ${counted(left.length, "run")}`
                : `Retry ${counted(left.length, "request")}`}
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
      <Text size="sm">Agents that support cancellation are notified. Work that is already done is not undone.</Text>
      <Text size="sm">
        A cancelled run cannot be resumed. You can retry it as a new run that reuses the completed steps.
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
      <Text size="sm">Each retry starts a new run with the same input. The original runs do not change.</Text>
      <Radio.Group label="Steps to run" value={whole ? "all" : "rest"} onChange={(value) => onWhole(value === "all")}>
        <Stack gap="xs" mt="xs">
          <Radio
            value="rest"
            label="Incomplete steps"
            description={
              unfinished === 0
                ? "All selected runs are completed."
                : `Retries ${counted(unfinished, "failed or cancelled run")}. Outputs of completed steps are reused.`
            }
            disabled={unfinished === 0}
            data-testid="bulk-rest"
          />
          <Radio
            value="all"
            label="All steps"
            description="No outputs are reused. Completed runs are retried too."
            data-testid="bulk-all"
          />
        </Stack>
      </Radio.Group>
      <Alert
        variant="light"
        color="orange"
        icon={<PhoneCall />}
        title="Agents will be called again"
        styles={{ title: { color: "var(--mantine-color-text)" } }}
        data-testid="bulk-consequences"
      >
        <Text size="sm">
          {agents.length === 0
            ? "Child runs start again and call their agents."
            : `These agents may repeat work that they have already done: ${named(agents, MOST_AGENTS)}.`}
        </Text>
      </Alert>
    </>
  );
}

function SkippedRuns({ wish, number, of }: { wish: BulkAction; number: number; of: number }) {
  const why = {
    cancel: "already ended or being cancelled",
    retry: "completed or not ended yet",
    restart: "not ended yet",
  }[wish];
  return (
    <Text size="sm" c="dimmed" data-testid="left-alone">
      {number} of {of} selected runs will be skipped: {why}.
    </Text>
  );
}

function BulkProgress({ went, wish }: { went: Went; wish: BulkAction }) {
  const well = went.done - went.failures.length;
  const isOver = went.state !== "going";
  const place = useRef<HTMLDivElement>(null);
  // The pressed button is gone, so the focus would leave the dialog without this.
  useEffect(() => place.current?.focus(), [isOver]);
  return (
    <Stack gap="xs" ref={place} tabIndex={-1} className={classes["went"]}>
      <Progress value={(100 * went.done) / went.of} aria-label="Progress" />
      <Text size="sm" role="status" data-testid="bulk-progress">
        {isOver
          ? `${counted(well, "run")} ${DONE[wish]}${went.failures.length > 0 ? `, ${went.failures.length} failed` : ""}.`
          : `${went.done} of ${went.of}…`}
        {went.state === "stopped" && ` Stopped: ${went.unasked.length} not processed.`}
      </Text>
      {went.failures.length > 0 && <Failures failures={went.failures} />}
      {isOver && went.failures.length + went.unasked.length > 0 && (
        <Text size="sm" c="dimmed" data-testid="bulk-left">
          {went.failures.length + went.unasked.length === 1 ? "This run stays selected." : "These runs stay selected."}
          {wish !== "cancel" &&
            went.failures.some(({ error }) => isUnclear(error)) &&
            " A retry without a response may have started. Repeating it does not start a second run."}
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
      aria-label="Failed requests"
      data-testid="bulk-failures"
    >
      {failures.map(({ run, error }) => (
        <List.Item key={run.id} data-testid="bulk-failure">
          <AnchorLink to="/runs/$run" params={{ run: run.id }} search={{}} size="sm" ff="monospace">
            {run.id}
          </AnchorLink>
          <Text size="sm">{errorMessage(error)}</Text>
        </List.Item>
      ))}
    </List>
  );
}
