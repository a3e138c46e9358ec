/** The dialog that retries a run: which steps, with which input, and which agents are called again. */

import { Alert, Button, Checkbox, Code, Group, Radio, Select, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { PhoneCall } from "lucide-react";
import { Fragment, useState } from "react";

import { api, body } from "../../api/client.ts";
import type { components } from "../../api/schema.d.ts";
import { Loading } from "../../app/Loading.tsx";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import { toast } from "../../app/toasts.ts";
import { JsonEditor, jsonProblem, parsed, written } from "../../forms/JsonEditor.tsx";
import type { Json } from "../../forms/schema.ts";
import classes from "./RetryDialog.module.css";
import { retryPlan, type Mode, type RetryPlan } from "./retryPlan.ts";
import { useRetry, type RetryRequest } from "./runCommands.ts";

type Run = components["schemas"]["Run"];
type Graph = components["schemas"]["WorkflowGraph"];

export default function RetryDialog({ run, step, onClose }: { run: string; step: string | null; onClose: () => void }) {
  // Loaded once per opening: an ended run does not change, and a refresh must not reset the form.
  const query = useQuery({ queryKey: ["to-retry", run], queryFn: () => load(run), staleTime: Infinity, gcTime: 0 });
  if (query.error !== null) return <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  if (query.data === undefined) return <Loading lines={4} />;
  return <RetryForm {...query.data} selected={step} onClose={onClose} />;
}

async function load(run: string): Promise<{ run: Run; graph: Graph }> {
  const found = await body(api.GET("/api/v1/runs/{run}", { params: { path: { run } } }));
  const { name, version } = found.workflow;
  const graph = await body(
    api.GET("/api/v1/workflows/{workflow}/graph", { params: { path: { workflow: name }, query: { version } } }),
  );
  return { run: found, graph };
}

function RetryForm({
  run,
  graph,
  selected,
  onClose,
}: {
  run: Run;
  graph: Graph;
  selected: string | null;
  onClose: () => void;
}) {
  const names = graph.steps.map((each) => each.name);
  const begin = selected !== null && names.includes(selected) ? selected : null;
  const isWhole = run.steps.every((each) => each.status === "COMPLETED" || each.status === "SKIPPED");
  const [mode, setMode] = useState<Mode>(begin !== null ? "step" : isWhole ? "all" : "rest");
  const [from, setFrom] = useState(begin ?? names[0] ?? null);
  const [otherInput, setOtherInput] = useState(false);
  const [input, setInput] = useState(() => written(run.input as Json));
  const [otherStepInput, setOtherStepInput] = useState(false);
  const [stepInputs, setStepInputs] = useState<Readonly<Record<string, string>>>({});
  const retry = useRetry(run.id);
  const navigate = useNavigate();

  const begun = run.steps.find((each) => each.name === from);
  const hasItems = graph.steps.find((each) => each.name === from)?.for_each !== null;
  const stepInput = stepInputs[from ?? ""] ?? written((begun?.input ?? {}) as Json);
  const givesStepInput = mode === "step" && otherStepInput && !hasItems;
  const plan = retryPlan(run.steps, graph.edges, mode, from, otherInput);
  const isReady = (!otherInput || isJson(input)) && (!givesStepInput || isJson(stepInput));

  const send = () => {
    const request: RetryRequest = {
      from_start: mode === "all",
      from_step: mode === "step" ? from : null,
      ...(otherInput ? { input: parsed(input) } : {}),
      ...(givesStepInput ? { step_input: parsed(stepInput) } : {}),
    };
    retry.mutate(request, {
      onSuccess: (started) => {
        toast("done", "Started the new run.");
        onClose();
        void navigate({ to: "/runs/$run", params: { run: started.id }, search: {} });
      },
    });
  };

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) send();
      }}
    >
      <Stack gap="md" data-testid="retry-dialog">
        <Text size="sm">A retry starts a new run. The original run does not change.</Text>
        <Radio.Group label="Steps to run" value={mode} onChange={(next) => setMode(next)}>
          <Stack gap="xs" mt="xs">
            <Radio
              value="rest"
              label="Incomplete steps"
              description={isWhole ? "All steps are completed." : "Outputs of completed steps are reused."}
              disabled={isWhole}
              data-testid="retry-rest"
            />
            <Radio
              value="step"
              label="From a step"
              description="Runs this step and all steps that depend on it. Outputs of other completed steps are reused."
              data-testid="retry-step"
            />
            <Radio value="all" label="All steps" description="No outputs are reused." data-testid="retry-all" />
          </Stack>
        </Radio.Group>
        {mode === "step" && (
          <Select
            label="First step"
            data={names}
            value={from}
            onChange={setFrom}
            allowDeselect={false}
            data-testid="retry-from"
          />
        )}
        {mode === "step" && (
          <Checkbox
            label="Change the step input"
            description={
              hasItems
                ? "Not available for a for_each step. Change the run input instead."
                : "Replaces the input that the workflow defines for this step."
            }
            disabled={hasItems}
            checked={givesStepInput}
            onChange={(event) => setOtherStepInput(event.currentTarget.checked)}
            data-testid="retry-other-step-input"
          />
        )}
        {givesStepInput && from !== null && (
          <JsonEditor
            key={from}
            label={`Input of ${from}`}
            text={stepInput}
            onText={(text) => setStepInputs((before) => ({ ...before, [from]: text }))}
            error={stepInput.trim() === "" ? "Enter a JSON value." : null}
            testId="retry-step-input"
          />
        )}
        <Checkbox
          label="Change the run input"
          checked={otherInput}
          onChange={(event) => setOtherInput(event.currentTarget.checked)}
          data-testid="retry-other-input"
        />
        {otherInput && (
          <JsonEditor
            label="Run input"
            text={input}
            onText={setInput}
            error={input.trim() === "" ? "Enter a JSON value." : null}
            testId="retry-input"
          />
        )}
        <Consequences plan={plan} inputChanged={otherInput} run={run} />
        {retry.error !== null && <ProblemPanel error={retry.error} />}
        <Group justify="flex-end" gap="sm" className={classes["ending"]}>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={retry.isPending} disabled={!isReady} data-testid="confirm-retry">
            Start new run
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function isJson(text: string): boolean {
  return text.trim() !== "" && jsonProblem(text) === null;
}

function Consequences({ plan, inputChanged, run }: { plan: RetryPlan; inputChanged: boolean; run: Run }) {
  const agents = [
    ...new Set(
      run.steps.filter((step) => plan.again.includes(step.name) && step.agent !== "").map((step) => step.agent),
    ),
  ];
  return (
    <Alert
      variant="light"
      color="orange"
      icon={<PhoneCall />}
      title="Agents will be called again"
      styles={{ title: { color: "var(--mantine-color-text)" } }}
      data-testid="retry-consequences"
    >
      <Stack gap={6}>
        <Text size="sm">
          {agents.length === 0
            ? "The following steps run again."
            : `These agents may repeat work that they have already done: ${agents.join(", ")}.`}
        </Text>
        <Names label="Runs again" names={plan.again} testId="retry-again" />
        <Names label="Reused" names={plan.kept} testId="retry-kept" />
        {plan.halfDone.length > 0 && (
          <Text size="sm">Only the incomplete items of {plan.halfDone.join(", ")} run again.</Text>
        )}
        {inputChanged && plan.kept.length > 0 && (
          <Text size="sm" fw={600}>
            The reused outputs are based on the old input.
          </Text>
        )}
      </Stack>
    </Alert>
  );
}

// Limits the list: a workflow may have hundreds of steps.
const MOST_NAMED = 20;

function Names({ label, names, testId }: { label: string; names: readonly string[]; testId: string }) {
  return (
    <Text size="sm" component="div" data-testid={testId}>
      {label}: {names.length === 0 && "none"}
      {/* The space allows a line break. */}
      {names.slice(0, MOST_NAMED).map((name) => (
        <Fragment key={name}>
          <Code>{name}</Code>{" "}
        </Fragment>
      ))}
      {names.length > MOST_NAMED && `and ${names.length - MOST_NAMED} more`}
    </Text>
  );
}
