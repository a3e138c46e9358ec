/** The inspector of a step, an attempt or an item. */

import { Anchor, Badge, Group, Select, SegmentedControl, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useMemo, type ReactNode } from "react";

import { Loading } from "../../app/Loading.tsx";
import { formatDuration, useNow } from "../../app/Timestamp.tsx";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import { StatusBadge } from "../../app/StatusBadge.tsx";
import { WireTab } from "../../wire/WireTab.tsx";
import { missingAttempt } from "../attempts.ts";
import { indexOf, isForAPerson, ownerOf, type RunModel } from "../model.ts";
import { type AttemptEnd, failedAttempts } from "./attemptErrors.ts";
import { FailureView, ToWire } from "./FailureView.tsx";
import { EventsTab } from "./EventsTab.tsx";
import classes from "./inspector.module.css";
import type { InspectorProps } from "./Inspector.tsx";
import { ItemList } from "./ItemList.tsx";
import { expressionOf } from "./jsonRows.ts";
import { LogsTab } from "./LogsTab.tsx";
import { FromCache, RoutingView } from "./RoutingView.tsx";
import { TabBar, type TabSpec, wishOf } from "./TabBar.tsx";
import { useEvents } from "./useEvents.ts";
import { isOver, mayHaveFailed, movesOf, type Step, stepIn, useStepDetail } from "./useDetails.ts";
import { NoValue, ValueView } from "./ValueView.tsx";

// More attempts than this are shown in a select field.
const MOST_BUTTONS = 6;

export function StepInspector({
  run,
  model,
  step: name,
  attempt,
  tab,
  onTab,
  onSelect,
}: InspectorProps & { step: string }) {
  const query = useStepDetail(run, name, model);
  const { events } = useEvents(run, name, model.seq, mayHaveFailed(model, name, query.data));
  const failures = useMemo(() => failedAttempts(events ?? []), [events]);
  const { tab: wished, form } = wishOf(tab);
  if (query.error !== null) {
    return (
      <Stack gap="xs" data-testid="inspector">
        <ProblemPanel error={query.error} again={() => void query.refetch()} />
        <FallbackLink onClick={() => onSelect(null, null)}>Show the run</FallbackLink>
      </Stack>
    );
  }
  if (query.data === undefined) return <Loading />;
  const step = query.data;
  const shownFailures = attempt === null ? failures : failures.filter((each) => each.attempt === attempt);
  const hasError = shownFailures.length > 0 || (attempt === null && step.error !== null);
  const isLoop = step.items !== null && step.items !== undefined;
  const live = !isOver(model, name);
  const status = stepIn(model, name)?.status ?? step.status;
  const tabs: readonly TabSpec[] = [
    ...(isLoop
      ? [
          {
            name: "items",
            label: <Counted what="Items" count={step.items!.total} />,
            show: () => (
              <ItemList
                run={run}
                step={step}
                live={live}
                moving={stepIn(model, name)?.counts ?? null}
                onSelect={(item) => onSelect(item, null)}
              />
            ),
          },
        ]
      : []),
    {
      name: "input",
      label: "Input",
      show: () =>
        step.input === null || step.input === undefined ? (
          <NoValue>
            {isLoop ? "Each item has its own input. Select one on the Items tab." : "The step has not been called yet."}
          </NoValue>
        ) : (
          <ValueView
            value={step.input}
            root="input"
            label="input"
            form={form}
            onForm={(chosen) => onTab(`input.${chosen}`)}
          />
        ),
    },
    { name: "output", label: "Output", show: () => <Output step={step} attempt={attempt} form={form} onTab={onTab} /> },
    ...(hasError
      ? [
          {
            name: "error",
            label: shownFailures.length > 1 ? <Counted what="Errors" count={shownFailures.length} /> : "Error",
            show: () => <Errors step={step} failures={shownFailures} model={model} onTab={onTab} />,
          },
        ]
      : []),
    {
      name: "events",
      label: "Events",
      show: () => <EventsTab run={run} model={model} step={name} attempt={attempt} />,
    },
    { name: "logs", label: "Logs", show: () => <LogsTab run={run} step={name} attempt={attempt} live={live} /> },
    {
      name: "wire",
      label: "Wire",
      show: () =>
        isLoop ? (
          <WireOfItems onItems={() => onTab("items")} />
        ) : (
          <WireTab
            key={name}
            run={run}
            step={name}
            attempt={attempt}
            live={live}
            moved={movesOf(model, name)}
            detail={step}
          />
        ),
    },
  ];
  // The timeline shows a scheduled attempt before it starts.
  const missing = attempt === null || (live && attempt === step.attempts + 1) ? null : missingAttempt(step, attempt);
  return (
    <Stack gap="xs" className={classes["inspector"]} data-testid="inspector">
      <Head
        step={step}
        status={status}
        attempt={attempt}
        onSelect={onSelect}
        onItems={(owner) => {
          onSelect(owner, null);
          onTab("items");
        }}
      />
      {step.from_cache !== undefined && <FromCache origin={step.from_cache} />}
      {step.routing !== undefined && <RoutingView routing={step.routing} />}
      {step.waiting_for !== null && status === "WAITING" && <Waiting waiting={step.waiting_for} />}
      {missing === null ? (
        <TabBar
          tabs={tabs}
          wish={wished}
          first={firstTab(step, attempt, hasError, isLoop)}
          onTab={onTab}
          label={`Details of ${name}`}
        />
      ) : (
        <>
          <Text size="sm" role="alert" data-testid="no-attempt">
            {missing}
          </Text>
          <FallbackLink onClick={() => onSelect(name, null)}>Show all attempts</FallbackLink>
        </>
      )}
    </Stack>
  );
}

/** A link shown instead of a missing step or attempt. */
function FallbackLink({ onClick, children }: { onClick: () => void; children: string }) {
  return (
    <Anchor component="button" type="button" size="sm" ta="left" onClick={onClick} data-testid="instead">
      {children}
    </Anchor>
  );
}

const WAITING_LABELS: Readonly<Record<NonNullable<Step["waiting_for"]>["kind"], string>> = {
  input: "Question from the agent",
  auth: "Login required by the agent",
  retry: "Waiting for the next attempt",
  remote: "The agent is working on its remote task",
  outcome: "The outcome of the call is unknown",
  time: "Waiting for a time",
  event: "Waiting for an event",
  person: "Waiting for a person",
  agent: "Waiting for an agent",
  cache: "Waiting for the output of an equal step",
  compensation: "The compensation has failed and waits for a person",
};

function Waiting({ waiting }: { waiting: NonNullable<Step["waiting_for"]> }) {
  const isQuestion = isForAPerson(waiting.kind);
  return (
    <Text size="sm" component="div" className={classes["waits"]} data-testid="waiting-for">
      {WAITING_LABELS[waiting.kind]}
      {waiting.text === "" ? "." : `: ${waiting.text}`}
      {isQuestion && (
        <>
          {" "}
          <Anchor component={Link} to="/inbox" size="sm" underline="always">
            Reply in the inbox
          </Anchor>
        </>
      )}
      <InnerQuestions waiting={waiting} />
    </Text>
  );
}

/** Where the questions are that a step with a child run waits for. */
function InnerQuestions({ waiting }: { waiting: NonNullable<Step["waiting_for"]> }) {
  const questions = waiting.questions ?? [];
  if (questions.length === 0) return null;
  return (
    <ul data-testid="inner-questions">
      {questions.map((question) => (
        <li key={question.item}>
          <Anchor
            component={Link}
            to="/runs/$run"
            params={{ run: question.run_id } as never}
            search={{ step: question.step } as never}
            size="sm"
            underline="always"
          >
            {question.step}
          </Anchor>
          {`: ${question.text}`}
        </li>
      ))}
      {waiting.more_questions === true && <li>More questions are in the inbox.</li>}
    </ul>
  );
}

function firstTab(step: Step, attempt: number | null, hasError: boolean, isLoop: boolean): string {
  if (isLoop) return "items";
  const failed = attempt === null ? step.error !== null : hasError;
  if (failed) return "error";
  return step.status === "COMPLETED" ? "output" : "input";
}

function Counted({ what, count }: { what: string; count: number }) {
  return (
    <>
      {what}{" "}
      <Badge size="sm" variant="default" radius="sm">
        {count.toLocaleString()}
      </Badge>
    </>
  );
}

function Head({
  step,
  status,
  attempt,
  onSelect,
  onItems,
}: {
  step: Step;
  status: Step["status"];
  attempt: number | null;
  onSelect: InspectorProps["onSelect"];
  onItems: (step: string) => void;
}) {
  const item = /^(.*)\[\d+\]$/.exec(step.name);
  return (
    <Group gap="sm" justify="space-between">
      <Group gap="sm">
        <Text component="h2" size="sm" fw={700} className={classes["path"]} data-testid="inspected">
          {step.name}
        </Text>
        <Text span size="sm">
          <StatusBadge status={status} />
        </Text>
        {step.agent !== "" && (
          <Anchor component={Link} to={"/agents/$agent"} params={{ agent: step.agent } as never} size="sm">
            {step.agent}
          </Anchor>
        )}
        {step.child !== null && step.child !== undefined && (
          <Anchor
            component={Link}
            to="/runs/$run"
            params={{ run: step.child.run_id } as never}
            size="sm"
            data-testid="child"
          >
            Child run of {step.workflow}
          </Anchor>
        )}
        {step.protocol !== null && (
          <Text size="xs" c="dimmed" title="Dialect" data-testid="dialect">
            {step.protocol}
          </Text>
        )}
        {step.repairs > 0 && (
          <Text size="xs" c="dimmed" data-testid="repairs">
            Asked {step.repairs} {step.repairs === 1 ? "time" : "times"} to correct its output
          </Text>
        )}
        {item !== null && (
          <Anchor component="button" type="button" size="sm" onClick={() => onItems(item[1]!)} data-testid="all-items">
            All items of {item[1]}
          </Anchor>
        )}
      </Group>
      {step.attempts > 1 && (
        <Attempts count={step.attempts} attempt={attempt} onAttempt={(chosen) => onSelect(step.name, chosen)} />
      )}
    </Group>
  );
}

function Attempts({
  count,
  attempt,
  onAttempt,
}: {
  count: number;
  attempt: number | null;
  onAttempt: (attempt: number | null) => void;
}) {
  const numbers = Array.from({ length: count }, (_, place) => String(place + 1));
  const choose = (value: string | null) => onAttempt(value === null || value === "all" ? null : Number(value));
  if (count > MOST_BUTTONS) {
    return (
      <Select
        size="xs"
        w={150}
        aria-label="Attempt"
        data={[
          { value: "all", label: "All attempts" },
          ...numbers.map((value) => ({ value, label: `Attempt ${value}` })),
        ]}
        value={attempt === null ? "all" : String(attempt)}
        onChange={choose}
        allowDeselect={false}
        data-testid="attempts"
      />
    );
  }
  return (
    <Group gap={6}>
      <Text size="xs" c="dimmed" id="attempts-label">
        Attempt
      </Text>
      <SegmentedControl
        size="xs"
        aria-labelledby="attempts-label"
        data={[{ value: "all", label: "All" }, ...numbers]}
        value={attempt === null ? "all" : String(attempt)}
        onChange={choose}
        data-testid="attempts"
      />
    </Group>
  );
}

function Output({
  step,
  attempt,
  form,
  onTab,
}: {
  step: Step;
  attempt: number | null;
  form: string | null;
  onTab: (tab: string) => void;
}) {
  if (attempt !== null && attempt < step.attempts) {
    return <NoValue>{`Attempt ${attempt} has no output. Attempt ${attempt + 1} followed.`}</NoValue>;
  }
  return (
    <Stack gap="xs">
      {step.warnings.map((warning, place) => (
        <Text key={place} size="sm" c="var(--status-waiting)">
          Warning: {warning}
        </Text>
      ))}
      {step.output === null || step.output === undefined ? (
        <NoValue>{noOutput(step.status)}</NoValue>
      ) : (
        <ValueView
          value={step.output}
          root={rootOf(step.name)}
          label="output"
          form={form}
          onForm={(chosen) => onTab(`output.${chosen}`)}
        />
      )}
    </Stack>
  );
}

/** The expression that refers to the output. The output of an item has none of its own. */
function rootOf(step: string): string {
  return step.includes("[") ? "output" : expressionOf("steps", [step, "output"]);
}

function noOutput(status: Step["status"]): string {
  switch (status) {
    case "COMPLETED":
      return "The output is null.";
    case "SKIPPED":
      return "The step was skipped, so it has no output.";
    case "FAILED":
      return "The step failed, so it has no output.";
    case "CANCELLED":
      return "The step was cancelled, so it has no output.";
    case "OUTCOME_UNKNOWN":
      return "The outcome of the call is unknown, so there is no output yet.";
    default:
      return "The output is available when the step completes.";
  }
}

function WireOfItems({ onItems }: { onItems: () => void }) {
  return (
    <Text size="sm" data-testid="wire-of-items">
      Each item has its own exchanges. Select one on the tab{" "}
      <Anchor component="button" type="button" size="sm" onClick={onItems}>
        Items
      </Anchor>
      .
    </Text>
  );
}

function Errors({
  step,
  failures,
  model,
  onTab,
}: {
  step: Step;
  failures: readonly AttemptEnd[];
  model: RunModel;
  onTab: (tab: string) => void;
}) {
  // A failure of the step itself, such as a missed deadline, has no attempt.
  const own = step.error !== null && !failures.some((each) => each.attempt === step.error?.attempt) ? step.error : null;
  return (
    <Stack gap="sm">
      {own !== null && <FailureView failure={own} title="The step failed" next={afterFailure(step, model)} />}
      {[...failures].reverse().map((each) => (
        <FailureView
          key={each.attempt}
          failure={each.failure}
          title={`Attempt ${each.attempt} failed`}
          next={<Next end={each} step={step} model={model} />}
        />
      ))}
      <ToWire onTab={onTab} />
    </Stack>
  );
}

function Next({ end, step, model }: { end: AttemptEnd; step: Step; model: RunModel }): ReactNode {
  const present = useNow();
  const runIsOver = model.finishedAt !== null;
  if (end.attempt < step.attempts) return `Attempt ${end.attempt + 1} followed.`;
  if (end.due !== null && step.status === "WAITING" && !runIsOver) {
    return `Attempt ${end.attempt + 1} starts in ${formatDuration(Math.max(0, Date.parse(end.due) - present))}.`;
  }
  if (step.status === "OUTCOME_UNKNOWN") return "A person has to resolve the unknown outcome in the inbox.";
  return step.status === "FAILED" ? afterFailure(step, model) : null;
}

function afterFailure(step: Step, model: RunModel): string {
  if (indexOf(step.name) !== null) return afterItem(step.name, model);
  if (stepIn(model, step.name)?.handled === true) return "The workflow handles this failure (on_error) and continues.";
  return model.finishedAt !== null
    ? "There are no more attempts. Fix the cause, then retry the run from this step."
    : "There are no more attempts. The run fails when its active steps have ended.";
}

/** The history marks the failure of every item as handled; the status of its step tells the consequence. */
function afterItem(item: string, model: RunModel): string {
  const name = ownerOf(item);
  const owner = stepIn(model, name);
  switch (owner?.status) {
    case "COMPLETED":
      return `The step ${name} completed despite this failure (on_error of its for_each).`;
    case "FAILED": {
      const isCause = owner.error?.causeItem === indexOf(item);
      const failed = isCause
        ? `There are no more attempts. This failure made the step ${name} fail`
        : `There are no more attempts. The step ${name} failed because of another item`;
      if (owner.handled) return `${failed}. The workflow handles the failure (on_error) and continues.`;
      return model.finishedAt !== null
        ? `${failed}. Fix the cause, then retry the run from that step.`
        : `${failed}. The run fails when its active steps have ended.`;
    }
    case "CANCELLED":
      return `There are no more attempts. The step ${name} was cancelled.`;
    default:
      return `There are no more attempts. The step ${name} continues with its other items (on_error of its for_each).`;
  }
}
