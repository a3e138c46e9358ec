/** What became of a call whose answer was lost: a person has found out, or decides. */

import { Button, Group, Radio, Stack } from "@mantine/core";
import { useState } from "react";

import { useMay } from "../app/access.ts";
import { NotAllowed } from "../app/NotAllowed.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { toast } from "../app/toasts.ts";
import { JsonEditor, jsonProblem, parsed } from "../forms/JsonEditor.tsx";
import { useResolve, type InboxItem, type Outcome } from "./waiting.ts";

const SAID: Readonly<Record<Outcome, (step: string) => string>> = {
  succeeded: (step) => `Noted: ${step} has succeeded. The run goes on with its output.`,
  failed: (step) => `Noted: ${step} has failed.`,
  call_again: (step) => `The agent of ${step} is called again.`,
};

export function ResolveForm({ item, onDone, isOver }: { item: InboxItem; onDone: () => void; isOver: boolean }) {
  const may = useMay("operator");
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [output, setOutput] = useState("");
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
        {!isOver && <NotAllowed may={may} title="What you say here cannot be sent" />}
        <Radio.Group
          label="What happened?"
          value={outcome}
          onChange={(chosen) => setOutcome(chosen)}
          data-testid="outcome"
        >
          <Stack gap="xs" mt="xs">
            <Radio
              value="succeeded"
              label="It did the work"
              description="The step completes with the output that you give."
            />
            <Radio value="failed" label="It did not" description="The step fails, as if the agent had said so." />
            <Radio
              value="call_again"
              label="Call it again"
              description="The agent gets the same task once more. If it did the work after all, it may do it twice."
            />
          </Stack>
        </Radio.Group>
        {outcome === "succeeded" && (
          <JsonEditor
            label="Output of the step"
            description="What the agent would have answered, as JSON. Left empty: null."
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
            {outcome === "call_again" ? "Call it again" : "Say so"}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
