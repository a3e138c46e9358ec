/** A notice at the top of the run page that explains what the run waits for or why it failed. */

import { Alert, Anchor, Code, Group, Text } from "@mantine/core";
import { Ban, CirclePause, CircleX, Hourglass, type LucideIcon, RotateCcw, Undo2 } from "lucide-react";
import { memo, type ReactNode } from "react";

import { AnchorLink } from "../app/links.tsx";
import { formatDuration } from "../app/Timestamp.tsx";
import { ChildLink, childRunIn } from "./ChildLink.tsx";
import { compensationsOf, isForAPerson, type RunModel, type StepModel } from "./model.ts";
import { useRunClock } from "./useRunClock.ts";

type Select = (step: string, attempt?: number | null) => void;

export const RunNotice = memo(function RunNotice({ model, onSelect }: { model: RunModel; onSelect: Select }) {
  switch (model.status) {
    case "FAILED":
      return <FailureNotice model={model} onSelect={onSelect} />;
    case "PAUSED":
      return (
        <Notice kind="PAUSED" icon={CirclePause} color="grape">
          The run is paused. Calls in progress complete, and no new calls start until you resume it.
        </Notice>
      );
    case "CANCELLED":
      return (
        <Notice kind="CANCELLED" icon={Ban} color="gray">
          The run was cancelled. Its remaining steps do not run.
          <CompensationOutcome model={model} />
        </Notice>
      );
    case "PENDING":
      return (
        <Notice kind="PENDING" icon={Hourglass} color="gray">
          The run is accepted and has not started yet.
        </Notice>
      );
    case "RUNNING":
      if (model.cancelRequestedAt !== null) {
        return (
          <Notice kind="CANCELLING" icon={Ban} color="gray">
            The run is being cancelled. Its agents are notified, and it ends within ten seconds.
          </Notice>
        );
      }
      return <WaitingNotice model={model} onSelect={onSelect} />;
    case "WAITING":
      return <WaitingNotice model={model} onSelect={onSelect} />;
    case "COMPENSATING":
      return <CompensationNotice model={model} onSelect={onSelect} />;
    case "COMPLETED":
      return null;
  }
});

function FailureNotice({ model, onSelect }: { model: RunModel; onSelect: Select }) {
  const { error } = model;
  if (error === null) return null;
  const { step, attempt } = error;
  const child = childRunIn(error);
  return (
    <Notice kind="FAILED" icon={CircleX} color="red">
      {step === null ? (
        "The run failed: "
      ) : (
        <>
          Step <StepButton step={step} attempt={attempt} onSelect={onSelect} /> failed:{" "}
        </>
      )}
      {error.message} <Code>{error.code}</Code>
      {error.fix !== "" && (
        <Text size="sm" fw={600} mt={2} data-testid="run-fix">
          {error.fix}
        </Text>
      )}
      <CompensationOutcome model={model} />
      {child !== null && <ChildLink run={child} />}
      {child === null && step !== null && attempt !== null && (
        <AnchorLink
          from="/runs/$run"
          search={({ open }) => ({ step, attempt, tab: "wire", ...(open === undefined ? {} : { open }) })}
          resetScroll={false}
          size="sm"
          c="inherit"
          underline="always"
          data-testid="run-wire"
        >
          View exchanges
        </AnchorLink>
      )}
    </Notice>
  );
}

/** The work of the run is being undone. */
function CompensationNotice({ model, onSelect }: { model: RunModel; onSelect: Select }) {
  const failed = compensationsOf(model).find(isQuestion);
  return (
    <Notice kind="COMPENSATING" icon={Undo2} color="yellow">
      {failed === undefined ? (
        "The run has not succeeded. Its completed steps are being undone, the last one first."
      ) : (
        <>
          The compensation <StepButton step={failed.name} attempt={null} onSelect={onSelect} /> has failed. Decide in
          the inbox how the run continues{quoted(failed)}
        </>
      )}
      {model.error !== null && (
        <Text size="sm" mt={2}>
          {model.error.message} <Code>{model.error.code}</Code>
        </Text>
      )}
    </Notice>
  );
}

function CompensationOutcome({ model }: { model: RunModel }) {
  if (model.compensation === null) return null;
  return (
    <Text size="sm" mt={2} data-testid="compensation">
      {model.compensation === "FAILED"
        ? "Undoing its work was given up: not everything is undone."
        : "The work of its completed steps was undone."}
    </Text>
  );
}

/** The run waits for a person or for a retry. */
function WaitingNotice({ model, onSelect }: { model: RunModel; onSelect: Select }) {
  const all = [...model.steps.values(), ...model.items.values()];
  const person = all.filter((step) => step.status === "OUTCOME_UNKNOWN" || isQuestion(step));
  const first = person[0];
  if (first !== undefined) {
    return (
      <Notice kind="WAITING" icon={Hourglass} color="yellow">
        Step <StepButton step={first.name} attempt={null} onSelect={onSelect} />{" "}
        {first.status === "OUTCOME_UNKNOWN"
          ? "has an unknown outcome. Resolve it in the inbox."
          : `${WAITS[first.waitingFor?.kind ?? ""] ?? "is waiting for a reply"}${quoted(first)}`}
        {person.length > 1 &&
          ` ${person.length - 1} more ${person.length === 2 ? "step is" : "steps are"} waiting for a person.`}
      </Notice>
    );
  }
  const next = all.filter((step) => step.status === "WAITING")[0];
  if (next === undefined || all.some((step) => step.status === "RUNNING" && step.items === null)) return null;
  return <RetryNotice step={next} onSelect={onSelect} />;
}

const WAITS: Readonly<Record<string, string>> = {
  auth: "is waiting for a login",
  person: "is waiting for an answer",
};

function isQuestion(step: StepModel): boolean {
  return step.status === "WAITING" && isForAPerson(step.waitingFor?.kind);
}

function quoted(step: StepModel): string {
  const text = step.waitingFor?.text ?? "";
  return text === "" ? "." : `: “${text.length > 300 ? `${text.slice(0, 300)}…` : text}”`;
}

function RetryNotice({ step, onSelect }: { step: StepModel; onSelect: Select }) {
  const now = useRunClock(true);
  const until = step.waitingFor?.until ?? null;
  return (
    <Notice kind="RETRY" icon={RotateCcw} color="yellow">
      Attempt {step.attempts} of step <StepButton step={step.name} attempt={step.attempts} onSelect={onSelect} />{" "}
      failed. The next attempt starts {until === null || until <= now ? "now" : `in ${formatDuration(until - now)}`}.
    </Notice>
  );
}

function StepButton({ step, attempt, onSelect }: { step: string; attempt: number | null; onSelect: Select }) {
  return (
    <Anchor
      component="button"
      type="button"
      size="sm"
      c="inherit"
      fw={600}
      underline="always"
      onClick={() => onSelect(step, attempt)}
    >
      {step}
    </Anchor>
  );
}

function Notice({
  kind,
  icon: Icon,
  color,
  children,
}: {
  kind: string;
  icon: LucideIcon;
  color: string;
  children: ReactNode;
}) {
  return (
    <Alert
      color={color}
      variant="light"
      py={6}
      px="sm"
      role={kind === "FAILED" ? "alert" : "status"}
      data-testid="run-notice"
      data-kind={kind}
    >
      <Group gap="xs" wrap="nowrap" align="flex-start">
        <Icon size={16} aria-hidden style={{ flex: "none", marginTop: 2 }} />
        <Text size="sm" component="div" style={{ overflowWrap: "anywhere" }}>
          {children}
        </Text>
      </Group>
    </Alert>
  );
}
