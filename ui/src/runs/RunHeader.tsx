/** The header of the run page: workflow, status, ids, times, and related runs. */

import { Group, Stack, Text, Title } from "@mantine/core";
import { History, LoaderCircle, Radio, Unplug } from "lucide-react";
import { memo, type ReactNode } from "react";

import type { Problem } from "../api/problem.ts";
import type { components } from "../api/schema.d.ts";
import type { Connection } from "../api/eventStream.ts";
import { escapeBidi } from "../app/bidi.ts";
import { AnchorLink } from "../app/links.tsx";
import { formatDuration, Timestamp } from "../app/Timestamp.tsx";
import { StatusBadge } from "../app/StatusBadge.tsx";
import { RunActions } from "./actions/RunActions.tsx";
import { CallerFact } from "./CallerFact.tsx";
import { CopyId } from "./CopyId.tsx";
import { LabelLinks } from "./LabelChips.tsx";
import type { RunModel } from "./model.ts";
import classes from "./RunPage.module.css";
import { runRoute } from "../app/router.tsx";
import { useRunClock } from "./useRunClock.ts";

type Run = components["schemas"]["Run"];

export const RunHeader = memo(function RunHeader({
  run,
  model,
  connection,
  problem,
}: {
  run: Run;
  model: RunModel;
  connection: Connection;
  problem: Problem | null;
}) {
  const { step = null } = runRoute.useSearch();
  return (
    <Stack gap={6} component="header">
      <Group justify="space-between" gap="xs">
        <Group gap="sm">
          <Title order={1} size="h3" data-testid="run-title">
            <AnchorLink
              to="/workflows/$workflow"
              params={{ workflow: run.workflow.name }}
              search={{ version: run.workflow.version }}
              inherit
            >
              {run.workflow.name}
            </AnchorLink>
          </Title>
          <Text c="dimmed" size="sm">
            v{run.workflow.version}
          </Text>
          <span data-testid="run-status">
            <StatusBadge status={model.status} />
          </span>
          <Connected connection={connection} problem={problem} />
        </Group>
        <RunActions run={run.id} model={model} step={step} />
      </Group>
      <dl className={classes["facts"]}>
        <Fact name="Run ID">
          <CopyId id={run.id} name="run ID" />
        </Fact>
        <Fact name="Started">
          <Timestamp at={run.started_at ?? run.created_at} />
        </Fact>
        {run.started_by !== null && (
          <Fact name="Started by">
            <span data-testid="started-by">{escapeBidi(run.started_by)}</span>
          </Fact>
        )}
        {run.message !== undefined && (
          <Fact name="Called over">
            <CallerFact message={run.message} />
          </Fact>
        )}
        {Object.keys(run.labels).length > 0 && (
          <Fact name="Labels">
            <LabelLinks labels={run.labels} />
          </Fact>
        )}
        <Fact name={model.startedAt !== null && model.finishedAt === null ? "Running for" : "Duration"}>
          <Elapsed model={model} />
        </Fact>
        <Fact name="Correlation ID">
          <CopyId id={run.correlation_id} name="correlation ID" />
        </Fact>
        {run.trace_id !== undefined && run.trace_id !== null && (
          <Fact name="Trace ID">
            <CopyId id={run.trace_id} name="trace ID" />
          </Fact>
        )}
        {run.retry_of !== undefined && run.retry_of !== null && (
          <Fact name="Retry of">
            <RunLink run={run.retry_of} testid="retry-of" />
          </Fact>
        )}
        {run.parent !== undefined && run.parent !== null && (
          <Fact name={`Child run of step ${run.parent.step} in`}>
            <RunLink run={run.parent.run_id} step={run.parent.step} testid="parent-run" />
          </Fact>
        )}
      </dl>
    </Stack>
  );
});

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function RunLink({ run, step, testid }: { run: string; step?: string; testid: string }) {
  return (
    <AnchorLink
      to="/runs/$run"
      params={{ run }}
      search={step === undefined ? {} : { step }}
      className={classes["id"]}
      size="xs"
      data-testid={testid}
    >
      {run}
    </AnchorLink>
  );
}

function Elapsed({ model }: { model: RunModel }) {
  const now = useRunClock(model.startedAt !== null && model.finishedAt === null);
  if (model.startedAt === null) return <>–</>;
  return <span data-testid="run-duration">{formatDuration((model.finishedAt ?? now) - model.startedAt)}</span>;
}

const CONNECTIONS = {
  connecting: { icon: LoaderCircle, words: "Connecting…" },
  live: { icon: Radio, words: "Live" },
  lost: { icon: Unplug, words: "Connection lost, reconnecting" },
  over: { icon: History, words: "Ended" },
} as const;

function Connected({ connection, problem }: { connection: Connection; problem: Problem | null }) {
  const { icon: Icon, words } = CONNECTIONS[connection];
  return (
    <span
      className={classes["connection"]}
      data-connection={connection}
      data-testid="connection"
      role="status"
      title={connection === "over" ? "The run has ended." : problem?.message}
    >
      <Icon size={14} aria-hidden />
      {words}
    </span>
  );
}
