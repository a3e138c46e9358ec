/** The inspector of the run itself: input, output or error, events, logs and exchanges. */

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
import { isOver, movesOf, useRunDetail } from "./useDetails.ts";
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
                title="The run failed"
                next={
                  error.step === null || error.step === undefined ? (
                    "Fix the cause, then retry the run."
                  ) : (
                    <>
                      The run failed at the step{" "}
                      <Anchor
                        component="button"
                        type="button"
                        size="sm"
                        onClick={() => onSelect(error.step!, error.attempt || null)}
                      >
                        {error.step}
                      </Anchor>
                      . Fix the cause, then retry the run from this step.
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
          Run
        </Text>
        <Text span size="sm">
          <StatusBadge status={model.status} />
        </Text>
        <Text size="xs" c="dimmed">
          Select a step to inspect it.
        </Text>
      </Group>
      <TabBar tabs={tabs} wish={wished} first={first} onTab={onTab} label="Run details" />
    </Stack>
  );
}

function noOutput(status: string): string {
  switch (status) {
    case "COMPLETED":
      return "The workflow's output is null.";
    case "FAILED":
      return "The run failed, so it has no output.";
    case "CANCELLED":
      return "The run was cancelled, so it has no output.";
    default:
      return "The output is available when the run completes.";
  }
}
