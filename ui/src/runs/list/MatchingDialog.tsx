/** Acts on all runs that match the filters: counts them, asks for confirmation, and shows the progress of the job. */

import { Button, Group, List, Modal, Progress, Select, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { api, body } from "../../api/client.ts";
import type { components } from "../../api/schema.d.ts";
import { AnchorLink } from "../../app/links.tsx";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import { counted } from "./formatCounts.ts";
import classes from "./list.module.css";
import { isLabel, queryOf, type RunsSearch } from "./search.ts";

type Job = components["schemas"]["Job"];
type Action = Job["action"];
type Request = components["schemas"]["BulkRunRequest"];

const ACTIONS: Readonly<Record<Action, { name: string; note: string; done: string }>> = {
  cancel: {
    name: "Cancel",
    note: "Runs that have not ended are cancelled. Work that is already done is not undone.",
    done: "being cancelled",
  },
  pause: { name: "Pause", note: "Calls in progress finish, and no new call starts.", done: "paused" },
  resume: { name: "Resume", note: "Paused runs continue.", done: "resumed" },
  retry: {
    name: "Retry",
    note: "Failed and cancelled runs start again as new runs. Outputs of completed steps are reused.",
    done: "retried",
  },
  label: { name: "Label", note: "The label is set on all runs, also on runs that have ended.", done: "labelled" },
  delete: {
    name: "Delete",
    note: "Runs that have ended are deleted with all their data. This cannot be undone. It requires the role admin.",
    done: "deleted",
  },
};
const NAMES = Object.entries(ACTIONS).map(([value, { name }]) => ({ value, label: name }));
const LOOK_EVERY_MS = 300;

export function MatchingDialog({ search, onClose }: { search: RunsSearch; onClose: () => void }) {
  // A relative time range must not move between the count and the action.
  const [filter] = useState(() => filterOf(search));
  const [action, setAction] = useState<Action>("cancel");
  const [label, setLabel] = useState("");
  const counting = useStart();
  const acting = useStart();
  const count = useJob(counting.data?.id);
  const job = useJob(acting.data?.id);
  const isReady = action !== "label" || isLabel(label);
  const request: Request = {
    action,
    filter,
    dry_run: false,
    ...(action === "label" ? { labels: labelsOf(label) } : {}),
  };
  const total = counting.data === undefined ? null : (count.data?.total ?? null);
  const problem = acting.error ?? counting.error ?? job.error ?? count.error;
  const choose = (next: Action) => {
    setAction(next);
    counting.reset();
    acting.reset();
  };
  return (
    <Modal opened onClose={onClose} title="Act on all matching runs" transitionProps={{ duration: 0 }}>
      <Stack gap="sm" data-testid="matching-dialog">
        {acting.data === undefined ? (
          <>
            <Select
              label="Action"
              data={NAMES}
              value={action}
              onChange={(next) => choose((next ?? "cancel") as Action)}
              allowDeselect={false}
              data-testid="matching-action"
            />
            <Text size="sm">{ACTIONS[action].note}</Text>
            {action === "label" && (
              <TextInput
                label="Label"
                placeholder="team:billing"
                value={label}
                onChange={(event) => setLabel(event.currentTarget.value)}
                error={label !== "" && !isLabel(label) ? "Write it as key:value." : null}
                data-testid="matching-label"
              />
            )}
            {total !== null && (
              <Text size="sm" fw={600} role="status" data-testid="matching-count">
                {counted(total, "run")} to {ACTIONS[action].name.toLowerCase()}
              </Text>
            )}
          </>
        ) : (
          <JobProgress job={job.data ?? acting.data} />
        )}
        {problem !== null && <ProblemPanel error={problem} />}
        <Group justify="flex-end" gap="sm">
          <Button variant="default" onClick={onClose} data-autofocus data-testid="close-matching">
            {acting.data === undefined ? "Cancel" : "Close"}
          </Button>
          {acting.data === undefined &&
            (total === null ? (
              <Button
                loading={counting.isPending || counting.data !== undefined}
                disabled={!isReady}
                onClick={() => counting.mutate({ ...request, dry_run: true })}
                data-testid="count-matching"
              >
                Count the runs
              </Button>
            ) : (
              <Button
                {...(action === "cancel" || action === "delete" ? { color: "red.9" } : {})}
                loading={acting.isPending}
                disabled={total === 0 || !isReady}
                onClick={() => acting.mutate(request)}
                data-testid="confirm-matching"
              >
                {ACTIONS[action].name} {counted(total, "run")}
              </Button>
            ))}
        </Group>
      </Stack>
    </Modal>
  );
}

function JobProgress({ job }: { job: Job }) {
  const stop = useMutation({
    mutationFn: () => body(api.POST("/api/v1/jobs/{job}/cancel", { params: { path: { job: job.id } } })),
  });
  const isOver = hasEnded(job);
  const failed = job.failed === 0 ? "" : `, ${job.failed} failed`;
  return (
    <Stack gap="xs">
      <Progress
        value={job.total === null || job.total === 0 ? 0 : (100 * job.processed) / job.total}
        aria-label="Progress"
      />
      <Text size="sm" role="status" data-testid="matching-progress" data-status={job.status}>
        {job.total === null
          ? "Counting the runs…"
          : isOver
            ? `${counted(job.succeeded, "run")} ${ACTIONS[job.action].done}${failed}.`
            : `${job.processed} of ${job.total}${failed}…`}
        {job.status === "CANCELLED" && " The job was cancelled."}
      </Text>
      {job.error !== null && <Text size="sm">The job failed: {job.error}</Text>}
      {!isOver && (
        <Text size="sm" c="dimmed">
          The job continues on the server if you close this dialog.
        </Text>
      )}
      {job.failures.length > 0 && (
        <List size="sm" spacing="xs" className={classes["failures"]} listStyleType="none" aria-label="Failures">
          {job.failures.map(({ run_id, message }) => (
            <List.Item key={run_id}>
              <AnchorLink to="/runs/$run" params={{ run: run_id }} search={{}} size="sm" ff="monospace">
                {run_id}
              </AnchorLink>
              <Text size="sm">{message}</Text>
            </List.Item>
          ))}
        </List>
      )}
      {stop.error !== null && <ProblemPanel error={stop.error} />}
      {!isOver && (
        <Group>
          <Button
            variant="default"
            size="xs"
            loading={stop.isPending}
            onClick={() => stop.mutate()}
            data-testid="stop-job"
          >
            Cancel the job
          </Button>
        </Group>
      )}
    </Stack>
  );
}

function useStart() {
  return useMutation({ mutationFn: (request: Request) => body(api.POST("/api/v1/runs/bulk", { body: request })) });
}

function useJob(id: string | undefined) {
  return useQuery({
    queryKey: ["job", id],
    queryFn: () => body(api.GET("/api/v1/jobs/{job}", { params: { path: { job: id ?? "" } } })),
    enabled: id !== undefined,
    refetchInterval: (query) => (query.state.data !== undefined && hasEnded(query.state.data) ? false : LOOK_EVERY_MS),
  });
}

function hasEnded(job: Job): boolean {
  return job.status === "COMPLETED" || job.status === "CANCELLED" || job.status === "FAILED";
}

function labelsOf(text: string): Record<string, string> {
  const colon = text.indexOf(":");
  return { [text.slice(0, colon)]: text.slice(colon + 1) };
}

function filterOf(search: RunsSearch): Request["filter"] {
  const query = queryOf(search);
  return {
    ...(query.status == null ? {} : { status: query.status }),
    ...(query.workflow == null ? {} : { workflow: query.workflow }),
    ...(query.agent == null ? {} : { agent: query.agent }),
    ...(query.q == null ? {} : { q: query.q }),
    ...(query.label == null ? {} : { label: query.label }),
    ...(query.since == null ? {} : { created_after: query.since }),
    ...(query.until == null ? {} : { created_before: query.until }),
  };
}
