/** Resolves an unknown outcome, or decides how a run continues after a compensation has failed. */

import { Button, Group, Radio, Stack } from "@mantine/core";
import { useState } from "react";

import { usePermission } from "../app/permissions.ts";
import { NotAllowed } from "../app/NotAllowed.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { toast } from "../app/toasts.ts";
import { JsonEditor, jsonProblem, parsed } from "../forms/JsonEditor.tsx";
import { useResolve, type InboxItem, type Outcome } from "./queries.ts";

const SAID: Readonly<Record<Outcome, (step: string) => string>> = {
  succeeded: (step) => `Resolved: ${step} succeeded. The run continues with its output.`,
  failed: (step) => `Resolved: ${step} failed.`,
  call_again: (step) => `Resolved: the agent of ${step} is called again.`,
  retry: (step) => `${step} is tried again.`,
  skip: (step) => `${step} is skipped. The run continues.`,
  give_up: (step) => `Gave up at ${step}. The run ends.`,
};

interface Choice {
  readonly outcome: Outcome;
  readonly label: string;
  readonly description: string;
  /** The label of the button. */
  readonly action: string;
}

const OUTCOMES: readonly Choice[] = [
  {
    outcome: "succeeded",
    label: "The call succeeded",
    description: "The step completes with the output that you enter.",
    action: "Resolve",
  },
  {
    outcome: "failed",
    label: "The call failed",
    description: "The step fails as if the agent had returned an error.",
    action: "Resolve",
  },
  {
    outcome: "call_again",
    label: "Call the agent again",
    description: "The agent receives the same task again. If the first call was executed, the work may be done twice.",
    action: "Call again",
  },
];

const DECISIONS: readonly Choice[] = [
  {
    outcome: "retry",
    label: "Try again",
    description: "The compensation is run once more.",
    action: "Try again",
  },
  {
    outcome: "skip",
    label: "Skip it",
    description: "Nothing is left to undo, or you have undone it yourself. The next compensation follows.",
    action: "Skip",
  },
  {
    outcome: "give_up",
    label: "Give up",
    description: "The run ends now. The steps that are not undone yet stay as they are.",
    action: "Give up",
  },
];

export function ResolveForm({ item, onDone, isOver }: { item: InboxItem; onDone: () => void; isOver: boolean }) {
  const may = usePermission("operator");
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [output, setOutput] = useState("");
  const choices = item.kind === "compensation" ? DECISIONS : OUTCOMES;
  const resolve = useResolve(item);
  const ready = !isOver && outcome !== null && (outcome !== "succeeded" || jsonProblem(output) === null);
  const send = () => {
    if (outcome === null || !ready || !may.allowed) return;
    resolve.mutate(
      { outcome, output: outcome === "succeeded" ? parsed(output) : undefined },
      {
        onSuccess: () => {
          toast("done", SAID[outcome](item.step));
          onDone();
        },
      },
    );
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <Stack gap="sm">
        {!isOver && <NotAllowed may={may} title="You can't resolve this" />}
        <Radio.Group
          label={item.kind === "compensation" ? "How does the run continue?" : "What happened?"}
          value={outcome}
          onChange={(chosen) => setOutcome(chosen)}
          data-testid="outcome"
        >
          <Stack gap="xs" mt="xs">
            {choices.map((choice) => (
              <Radio
                key={choice.outcome}
                value={choice.outcome}
                label={choice.label}
                description={choice.description}
              />
            ))}
          </Stack>
        </Radio.Group>
        {outcome === "succeeded" && (
          <JsonEditor
            label="Step output"
            description="The agent's output as JSON. If empty, the output is null."
            text={output}
            onText={setOutput}
            testId="outcome-output"
          />
        )}
        {resolve.error !== null && <ProblemPanel error={resolve.error} />}
        <Group gap="sm">
          <Button
            type="submit"
            loading={resolve.isPending}
            disabled={!ready || !may.allowed}
            data-testid="send-outcome"
          >
            {choices.find((choice) => choice.outcome === outcome)?.action ?? "Resolve"}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
