/** Runs a run again: which steps, with which input, and what that means for the agents. */

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
  // Read once for each time the dialog opens: a run that has ended stays as it is, and so does what is being typed.
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
        toast("done", "The new run has started.");
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
        <Text size="sm">This starts a new run with an id of its own. The run before stays as it is.</Text>
        <Radio.Group label="What runs again" value={mode} onChange={(next) => setMode(next)}>
          <Stack gap="xs" mt="xs">
            <Radio
              value="rest"
              label="What did not complete"
              description={
                isWhole ? "Everything has completed: there is nothing left to run." : "Completed outputs are kept."
              }
              disabled={isWhole}
              data-testid="retry-rest"
            />
            <Radio
              value="step"
              label="From a step"
              description="This step and all that come after it; what else completed is kept."
              data-testid="retry-step"
            />
            <Radio value="all" label="Everything" description="Nothing is kept." data-testid="retry-all" />
          </Stack>
        </Radio.Group>
        {mode === "step" && (
          <Select
            label="Step to begin with"
            data={names}
            value={from}
            onChange={setFrom}
            allowDeselect={false}
            data-testid="retry-from"
          />
        )}
        {mode === "step" && (
          <Checkbox
            label="Give this step another input"
            description={
              hasItems
                ? "Not for a step that runs once for each item of a list: change the run's input instead."
                : "It replaces what the workflow would make for the step; the steps before are not asked."
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
            error={stepInput.trim() === "" ? "There is no JSON yet." : null}
            testId="retry-step-input"
          />
        )}
        <Checkbox
          label="Change the run's input"
          checked={otherInput}
          onChange={(event) => setOtherInput(event.currentTarget.checked)}
          data-testid="retry-other-input"
        />
        {otherInput && (
          <JsonEditor
            label="Input of the run"
            text={input}
            onText={setInput}
            error={input.trim() === "" ? "There is no JSON yet." : null}
            testId="retry-input"
          />
        )}
        <Consequences plan={plan} inputChanged={otherInput} run={run} />
        {retry.error !== null && <ProblemPanel error={retry.error} />}
        <Group justify="flex-end" gap="sm" className={classes["ending"]}>
          <Button variant="default" onClick={onClose}>
            Do not retry
          </Button>
          <Button type="submit" loading={retry.isPending} disabled={!isReady} data-testid="confirm-retry">
            Start the new run
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
      title="Agents are called again"
      styles={{ title: { color: "var(--mantine-color-text)" } }}
      data-testid="retry-consequences"
    >
      <Stack gap={6}>
        <Text size="sm">
          {agents.length === 0
            ? "The steps below run again."
            : `They may repeat work that they have done before: ${agents.join(", ")}.`}
        </Text>
        <Names label="Run again" names={plan.again} testId="retry-again" />
        <Names label="Kept" names={plan.kept} testId="retry-kept" />
        {plan.halfDone.length > 0 && (
          <Text size="sm">Of {plan.halfDone.join(", ")} only the items that did not complete run again.</Text>
        )}
        {inputChanged && plan.kept.length > 0 && (
          <Text size="sm" fw={600}>
            The kept outputs were made from the old input, and are not made again from the new one.
          </Text>
        )}
      </Stack>
    </Alert>
  );
}

// A workflow may have hundreds of steps.
const MOST_NAMED = 20;

function Names({ label, names, testId }: { label: string; names: readonly string[]; testId: string }) {
  return (
    <Text size="sm" component="div" data-testid={testId}>
      {label}: {names.length === 0 && "nothing"}
      {/* With a space between them, at which the line breaks. */}
      {names.slice(0, MOST_NAMED).map((name) => (
        <Fragment key={name}>
          <Code>{name}</Code>{" "}
        </Fragment>
      ))}
      {names.length > MOST_NAMED && `and ${names.length - MOST_NAMED} more`}
    </Text>
  );
}
