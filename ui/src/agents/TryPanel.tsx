/** Sends one message to an agent, as a step would, and shows what came back with all that was on the wire. */

import { Group, List, NumberInput, SegmentedControl, Stack, Text, Textarea, Title } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { MessageCircleQuestionMark, Send } from "lucide-react";
import { useState } from "react";

import { api, body } from "../api/client.ts";
import { useMay } from "../app/access.ts";
import { lasting } from "../app/Timestamp.tsx";
import { NotAllowed } from "../app/NotAllowed.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { JsonEditor, jsonProblem, parsed } from "../forms/JsonEditor.tsx";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import { JsonTree } from "../runs/inspector/JsonTree.tsx";
import type { Json } from "../runs/inspector/jsonRows.ts";
import { LongText } from "../runs/inspector/LongText.tsx";
import { ExchangeList } from "../wire/ExchangeList.tsx";
import classes from "./agents.module.css";
import { Note } from "./Note.tsx";
import type { Agent, Message, Trial } from "./queries.ts";

const LONGEST_SECONDS = 60;

type Form = "text" | "input";

export function TryPanel({ agent }: { agent: Agent }) {
  const may = useMay("operator");
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
  const broken = form === "input" ? (input.trim() === "" ? "An input is needed." : jsonProblem(input)) : null;
  const isReady = form === "text" ? text !== "" : broken === null;
  const refused = !may.allowed ? may.reason : isReady ? null : (broken ?? "Write a message first.");
  const send = () => {
    if (refused !== null || trial.isPending) return;
    const message = form === "text" ? { text } : { input: parsed(input) };
    trial.mutate({ ...message, timeout_ms: Math.round(Number(seconds || LONGEST_SECONDS) * 1_000) });
  };
  return (
    <Stack gap="md">
      <NotAllowed may={may} title="What you write here cannot be sent" />
      <form
        className={classes["box"]}
        onSubmit={(event) => event.preventDefault()}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
        }}
      >
        <Stack gap="sm">
          <Text size="sm">
            The agent is really called, with its own credentials, and does what it is asked to. It is no run: nothing is
            kept or retried, and its breaker and limits do not count it.
          </Text>
          <SegmentedControl
            size="xs"
            w="fit-content"
            aria-label="Form of the message"
            data={[
              { value: "text", label: "Text" },
              { value: "input", label: "Input as JSON" },
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
              description="What a step would give to the agent as its input."
              text={input}
              onText={setInput}
              error={broken}
              testId="try-input"
            />
          )}
          <Group gap="md" align="flex-end">
            <NumberInput
              label="Longest wait, in seconds"
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
          The agent has the message.
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
          On the wire
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
  const took = `${trial.protocol ?? "Nothing was spoken"}, ${lasting(trial.duration_ms)}`;
  const warnings = trial.warnings.length > 0 && (
    <List size="sm">
      {trial.warnings.map((warning) => (
        <List.Item key={warning}>{warning}</List.Item>
      ))}
    </List>
  );
  if (trial.error !== null) {
    return (
      <Note weight="bad" title={`It failed: ${trial.error.code}`} testId="trial-error">
        <Text size="sm">{trial.error.message}</Text>
        <Text size="sm" fw={600}>
          {trial.error.fix}
        </Text>
        {warnings}
        <Text size="xs" mt={4}>
          {took}
        </Text>
      </Note>
    );
  }
  if (trial.question !== null) {
    return (
      <Note weight="caution" icon={MessageCircleQuestionMark} title="The agent asks something" testId="trial-question">
        <Text size="sm">{trial.question.text}</Text>
        <Text size="sm">
          A trial cannot answer: the agent was told that nobody will. A run would wait in the inbox.
        </Text>
        <Text size="xs" mt={4}>
          {took}
        </Text>
      </Note>
    );
  }
  return (
    <Note weight="good" title="It answered" testId="trial-answer">
      <Text size="sm">{took}</Text>
      {warnings}
    </Note>
  );
}

function Output({ output }: { output: Json }) {
  const words = typeof output === "string" ? output : wordsOf(output);
  return (
    <section aria-labelledby="output-heading">
      <Title order={2} size="h5" mb="xs" id="output-heading">
        Output
      </Title>
      <div className={classes["columns"]}>
        {words !== null && <LongText text={words} label="What it said" name="output.txt" lines={16} />}
        {typeof output !== "string" && <JsonTree value={output} root="output" label="output" />}
      </div>
    </section>
  );
}

/** The text of an output as every dialect gives it. */
function wordsOf(output: Json): string | null {
  if (typeof output !== "object" || output === null || Array.isArray(output)) return null;
  const text = (output as Readonly<Record<string, Json>>)["text"];
  return typeof text === "string" && text !== "" ? text : null;
}
