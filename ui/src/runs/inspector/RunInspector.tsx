/** The run itself: what it was given, what came of it, and all that happened. */

import { Anchor, Group, Stack, Text } from "@mantine/core";

import { Loading } from "../../app/Loading.tsx";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import { StatusBadge } from "../../app/StatusBadge.tsx";
import { WireTab } from "../../wire/WireTab.tsx";
import { FailureView } from "./FailureView.tsx";
import { EventsTab } from "./EventsTab.tsx";
import classes from "./inspector.module.css";
import type { InspectorProps } from "./Inspector.tsx";
import { LogsTab } from "./LogsTab.tsx";
import { TabBar, type TabSpec, wishOf } from "./TabBar.tsx";
import { isOver, movesOf, useRunDetail } from "./useInspected.ts";
import { NoValue, ValueView } from "./ValueView.tsx";

export function RunInspector({ run, model, tab, onTab, onSelect }: InspectorProps) {
  const query = useRunDetail(run);
  const { tab: wished, form } = wishOf(tab);
  if (query.error !== null) return <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  if (query.data === undefined) return <Loading />;
  const { input, output, error, status } = query.data;
  const tabs: readonly TabSpec[] = [
    {
      name: "input",
      label: "Input",
      show: () => (
        <ValueView value={input} root="input" label="input" form={form} onForm={(chosen) => onTab(`input.${chosen}`)} />
      ),
    },
    {
      name: "output",
      label: "Output",
      show: () =>
        output === null || output === undefined ? (
          <NoValue>{noOutput(status)}</NoValue>
        ) : (
          <ValueView
            value={output}
            root="output"
            label="output"
            form={form}
            onForm={(chosen) => onTab(`output.${chosen}`)}
          />
        ),
    },
    ...(error === null
      ? []
      : [
          {
            name: "error",
            label: "Error",
            show: () => (
              <FailureView
                failure={error}
                title="The run has failed"
                next={
                  error.step === null || error.step === undefined ? (
                    "Nothing more happens. Retry the run once the cause is gone."
                  ) : (
                    <>
                      It failed at the step{" "}
                      <Anchor
                        component="button"
                        type="button"
                        size="sm"
                        onClick={() => onSelect(error.step!, error.attempt || null)}
                      >
                        {error.step}
                      </Anchor>
                      . Nothing more happens. Retry the run from there once the cause is gone.
                    </>
                  )
                }
              />
            ),
          },
        ]),
    { name: "events", label: "Events", show: () => <EventsTab run={run} model={model} step={null} attempt={null} /> },
    {
      name: "logs",
      label: "Logs",
      show: () => <LogsTab run={run} step={null} attempt={null} live={!isOver(model, null)} />,
    },
    {
      name: "wire",
      label: "Wire",
      show: () => (
        <WireTab run={run} step={null} attempt={null} live={!isOver(model, null)} moved={movesOf(model, null)} />
      ),
    },
  ];
  const first = error !== null ? "error" : output !== null && output !== undefined ? "output" : "input";
  return (
    <Stack gap="xs" className={classes["inspector"]} data-testid="inspector">
      <Group gap="sm">
        <Text component="h2" size="sm" fw={700}>
          The run
        </Text>
        <Text span size="sm">
          <StatusBadge status={model.status} />
        </Text>
        <Text size="xs" c="dimmed">
          Select a step to look into it.
        </Text>
      </Group>
      <TabBar tabs={tabs} wish={wished} first={first} onTab={onTab} label="What is known of the run" />
    </Stack>
  );
}

function noOutput(status: string): string {
  switch (status) {
    case "COMPLETED":
      return "The workflow's output is null.";
    case "FAILED":
      return "The run has failed, so it has no output.";
    case "CANCELLED":
      return "The run was cancelled, so it has no output.";
    default:
      return "The output comes when the run is done.";
  }
}
