/** Sends one message to an agent, as a step would, and shows the result with the exchanges on the wire. */

import { Group, List, NumberInput, SegmentedControl, Stack, Text, Textarea, Title } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { MessageCircleQuestionMark, Send } from "lucide-react";
import { useState } from "react";

import { api, body } from "../api/client.ts";
import { usePermission } from "../app/permissions.ts";
import { formatDuration } from "../app/Timestamp.tsx";
import { NotAllowed } from "../app/NotAllowed.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { JsonEditor, jsonProblem, parsed } from "../forms/JsonEditor.tsx";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import { JsonTree } from "../runs/inspector/JsonTree.tsx";
import type { Json } from "../runs/inspector/jsonRows.ts";
import { LongText } from "../runs/inspector/LongText.tsx";
import { ExchangeList } from "../wire/ExchangeList.tsx";
import classes from "./agents.module.css";
import { Callout } from "./Callout.tsx";
import type { Agent, Message, Trial } from "./queries.ts";

const LONGEST_SECONDS = 60;

type Form = "text" | "input";

export function TestCallPanel({ agent }: { agent: Agent }) {
  const may = usePermission("operator");
  const [form, setForm] = useState<Form>("text");
  const [text, setText] = useState("");
  const [input, setInput] = useState('{\n  "text": ""\n}');
  const [seconds, setSeconds] = useState<number | string>(
    Math.min(LONGEST_SECONDS, Math.ceil(agent.timeout_ms / 1_000)),
  );
  const trial = useMutation({
    mutationFn: (message: Message) =>
      body(api.POST("/api/v1/agents/{agent}/try", { params: { path: { agent: agent.name } }, body: message })),
  });
  const broken = form === "input" ? (input.trim() === "" ? "Enter an input." : jsonProblem(input)) : null;
  const isReady = form === "text" ? text !== "" : broken === null;
  const refused = !may.allowed ? may.reason : isReady ? null : (broken ?? "Enter a message first.");
  const send = () => {
    if (refused !== null || trial.isPending) return;
    const message = form === "text" ? { text } : { input: parsed(input) };
    trial.mutate({ ...message, timeout_ms: Math.round(Number(seconds || LONGEST_SECONDS) * 1_000) });
  };
  return (
    <Stack gap="md">
      <NotAllowed may={may} title="You can't send a test call" />
      <form
        className={classes["box"]}
        onSubmit={(event) => event.preventDefault()}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
        }}
      >
        <Stack gap="sm">
          <Text size="sm">
            A test call is a real call with the agent's credentials, and the agent does the work. It belongs to no run:
            it is not stored or retried, and does not count toward the agent's limits.
          </Text>
          <SegmentedControl
            size="xs"
            w="fit-content"
            aria-label="Message format"
            data={[
              { value: "text", label: "Text" },
              { value: "input", label: "JSON input" },
            ]}
            value={form}
            onChange={(next) => setForm(next)}
            data-testid="try-form"
          />
          {form === "text" ? (
            <Textarea
              label="Message"
              autosize
              minRows={3}
              maxRows={12}
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
              data-testid="try-text"
            />
          ) : (
            <JsonEditor
              label="Input"
              description="The input that a step would send to the agent."
              text={input}
              onText={setInput}
              error={broken}
              testId="try-input"
            />
          )}
          <Group gap="md" align="flex-end">
            <NumberInput
              label="Timeout (seconds)"
              size="xs"
              w={170}
              min={1}
              max={LONGEST_SECONDS}
              clampBehavior="strict"
              value={seconds}
              onChange={setSeconds}
              data-testid="try-seconds"
            />
            <ActionButton
              icon={Send}
              refused={refused}
              loading={trial.isPending}
              filled
              size="sm"
              onPress={send}
              testId="try-send"
            >
              Send
            </ActionButton>
          </Group>
        </Stack>
      </form>
      {trial.isPending && (
        <Text size="sm" role="status">
          Waiting for the agent…
        </Text>
      )}
      {trial.error !== null && <ProblemPanel error={trial.error} />}
      {trial.data !== undefined && <Outcome trial={trial.data} />}
    </Stack>
  );
}

function Outcome({ trial }: { trial: Trial }) {
  return (
    <Stack gap="md" data-testid="trial" data-outcome={trial.outcome}>
      <Verdict trial={trial} />
      {trial.outcome === "success" && <Output output={trial.output} />}
      <section aria-labelledby="wire-heading">
        <Title order={2} size="h5" mb="xs" id="wire-heading">
          Exchanges
        </Title>
        {trial.exchanges.length === 0 ? (
          <Text size="sm" c="dimmed">
            Nothing was sent.
          </Text>
        ) : (
          <ExchangeList exchanges={trial.exchanges} />
        )}
      </section>
    </Stack>
  );
}

function Verdict({ trial }: { trial: Trial }) {
  const took = `${trial.protocol ?? "No call was made"}, ${formatDuration(trial.duration_ms)}`;
  const warnings = trial.warnings.length > 0 && (
    <List size="sm">
      {trial.warnings.map((warning) => (
        <List.Item key={warning}>{warning}</List.Item>
      ))}
    </List>
  );
  if (trial.error !== null) {
    return (
      <Callout weight="bad" title={`Call failed: ${trial.error.code}`} testId="trial-error">
        <Text size="sm">{trial.error.message}</Text>
        <Text size="sm" fw={600}>
          {trial.error.fix}
        </Text>
        {warnings}
        <Text size="xs" mt={4}>
          {took}
        </Text>
      </Callout>
    );
  }
  if (trial.question !== null) {
    return (
      <Callout
        weight="caution"
        icon={MessageCircleQuestionMark}
        title="The agent asked a question"
        testId="trial-question"
      >
        <Text size="sm">{trial.question.text}</Text>
        <Text size="sm">
          You can't reply to a test call, so it was cancelled at the agent. In a run, the question would appear in the
          inbox.
        </Text>
        <Text size="xs" mt={4}>
          {took}
        </Text>
      </Callout>
    );
  }
  return (
    <Callout weight="good" title="Succeeded" testId="trial-answer">
      <Text size="sm">{took}</Text>
      {warnings}
    </Callout>
  );
}

function Output({ output }: { output: Json }) {
  const words = typeof output === "string" ? output : textOfOutput(output);
  return (
    <section aria-labelledby="output-heading">
      <Title order={2} size="h5" mb="xs" id="output-heading">
        Output
      </Title>
      <div className={classes["columns"]}>
        {words !== null && <LongText text={words} label="Text" name="output.txt" lines={16} />}
        {typeof output !== "string" && <JsonTree value={output} root="output" label="output" />}
      </div>
    </section>
  );
}

/** The text of an output, which every dialect has in the same field. */
function textOfOutput(output: Json): string | null {
  if (typeof output !== "object" || output === null || Array.isArray(output)) return null;
  const text = (output as Readonly<Record<string, Json>>)["text"];
  return typeof text === "string" && text !== "" ? text : null;
}
