/** The form that registers or edits an agent. Credentials are write-only: the server never returns them. */

import {
  Button,
  Group,
  NumberInput,
  PasswordInput,
  Select,
  Stack,
  Switch,
  Text,
  Textarea,
  TextInput,
  Title,
} from "@mantine/core";
import type { ReactNode } from "react";

import { Problem } from "../api/problem.ts";
import { usePermission } from "../app/permissions.ts";
import { NotAllowed } from "../app/NotAllowed.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { JsonEditor, jsonProblem } from "../forms/JsonEditor.tsx";
import classes from "./agents.module.css";
import { AUTH_TYPES, type Fields, PROTOCOLS, SECRET_PARTS } from "./formFields.ts";

interface FormProps {
  readonly fields: Fields;
  readonly change: (part: Partial<Fields>) => void;
  readonly error: unknown;
  /** Whether credentials are stored. They are kept unless new ones are entered. */
  readonly hasSecret: boolean;
  readonly isSending: boolean;
  readonly send: () => void;
  readonly word: string;
  readonly extraActions: ReactNode;
}

export function AgentForm({ fields, change, error, hasSecret, isSending, send, word, extraActions }: FormProps) {
  const may = usePermission("admin");
  const found = findings(error);
  const isBroken = jsonProblem(fields.protocolConfig) !== null || jsonProblem(fields.secretJson) !== null;
  const isReady = fields.name.trim() !== "" && fields.url.trim() !== "" && !isBroken;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady && may.allowed) send();
      }}
    >
      <Stack gap="md" maw={720}>
        <NotAllowed may={may} title="You can't save changes here" />
        <Section title="General">
          <TextInput
            label="Name"
            description="Workflows refer to the agent by this name."
            required
            maxLength={255}
            value={fields.name}
            onChange={(event) => change({ name: event.currentTarget.value })}
            error={found("name")}
            data-testid="field-name"
          />
          <TextInput
            label="URL"
            description="An http or https URL, the ARN of an AgentCore runtime, or stdio: followed by a program name."
            placeholder="http://localhost:8080/agent"
            required
            maxLength={2048}
            value={fields.url}
            onChange={(event) => change({ url: event.currentTarget.value })}
            error={found("url")}
            data-testid="field-url"
          />
          <Textarea
            label="Description"
            autosize
            minRows={1}
            maxLength={10_000}
            value={fields.description}
            onChange={(event) => change({ description: event.currentTarget.value })}
            error={found("description")}
            data-testid="field-description"
          />
        </Section>
        <Section title="Protocol">
          <Select
            label="Protocol"
            description="With auto, Trunkline reads the agent card, and probes the known protocols if there is none."
            data={[...new Set([...PROTOCOLS, fields.protocol])]}
            allowDeselect={false}
            value={fields.protocol}
            onChange={(protocol) => change({ protocol: protocol ?? "auto" })}
            error={found("protocol")}
            data-testid="field-protocol"
          />
          <JsonEditor
            label="Protocol options"
            description='Optional JSON, for example {"method": "message/send", "input_mode": "json"}'
            text={fields.protocolConfig}
            onText={(protocolConfig) => change({ protocolConfig })}
            error={found("protocol_config")}
            testId="field-protocol-config"
          />
        </Section>
        <Section title="Authentication">
          <Select
            label="Authentication type"
            data={[...AUTH_TYPES]}
            allowDeselect={false}
            value={fields.authType}
            onChange={(authType) => change({ authType: authType ?? "none", secret: {}, secretJson: "" })}
            error={found("auth_type")}
            data-testid="field-auth-type"
          />
          <Secret fields={fields} change={change} error={found("auth_config")} hasSecret={hasSecret} />
        </Section>
        <Limits fields={fields} change={change} found={found} />
        {error !== null && <ProblemPanel error={error} />}
        <Group gap="xs">
          <Button type="submit" disabled={!isReady || !may.allowed} loading={isSending} data-testid="save-agent">
            {word}
          </Button>
          {extraActions}
          {!may.allowed && (
            <Text size="sm" c="dimmed">
              {may.reason}
            </Text>
          )}
        </Group>
      </Stack>
    </form>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <fieldset className={classes["fieldset"]}>
      <Title order={2} size="h5" mb="xs">
        {title}
      </Title>
      <Stack gap="sm">{children}</Stack>
    </fieldset>
  );
}

function Secret({
  fields,
  change,
  error,
  hasSecret,
}: Pick<FormProps, "fields" | "change" | "hasSecret"> & { error: string | null }) {
  const parts = SECRET_PARTS[fields.authType];
  if (fields.authType === "none") return null;
  const stays = hasSecret
    ? "Leave empty to keep the stored credentials."
    : "Credentials are stored encrypted and never shown again.";
  if (parts === undefined) {
    return (
      <JsonEditor
        label="Credentials (JSON)"
        description={stays}
        text={fields.secretJson}
        onText={(secretJson) => change({ secretJson })}
        error={error}
        testId="field-secret-json"
      />
    );
  }
  return (
    <>
      {parts.map(({ name, label, isSecret }) => {
        const Input = isSecret ? PasswordInput : TextInput;
        return (
          <Input
            key={name}
            label={label}
            autoComplete="off"
            value={fields.secret[name] ?? ""}
            onChange={(event) => change({ secret: { ...fields.secret, [name]: event.currentTarget.value } })}
            data-testid={`field-secret-${name}`}
          />
        );
      })}
      <Text size="xs" c="dimmed">
        {stays}
      </Text>
      {error !== null && (
        <Text size="xs" c="red">
          {error}
        </Text>
      )}
    </>
  );
}

function Limits({
  fields,
  change,
  found,
}: Pick<FormProps, "fields" | "change"> & { found: (path: string) => string | null }) {
  return (
    <Section title="Limits">
      <Group gap="md" align="flex-start">
        <NumberInput
          label="Timeout per attempt (ms)"
          min={1}
          max={86_400_000}
          value={fields.timeoutMs}
          onChange={(timeoutMs) => change({ timeoutMs })}
          error={found("timeout_ms")}
          data-testid="field-timeout"
        />
        <NumberInput
          label="Max concurrent calls"
          min={1}
          max={10_000}
          value={fields.maxConcurrency}
          onChange={(maxConcurrency) => change({ maxConcurrency })}
          error={found("max_concurrency")}
          data-testid="field-concurrency"
        />
      </Group>
      <Switch
        label="Limit the call rate"
        checked={fields.hasRate}
        onChange={(event) => change({ hasRate: event.currentTarget.checked })}
        data-testid="field-rate"
      />
      {fields.hasRate && (
        <Group gap="md" align="flex-start">
          <NumberInput
            label="Calls per second"
            min={0.001}
            value={fields.perSecond}
            onChange={(perSecond) => change({ perSecond })}
            error={found("rate")}
          />
          <NumberInput label="Burst size" min={1} value={fields.burst} onChange={(burst) => change({ burst })} />
        </Group>
      )}
      <Switch
        label="Use a circuit breaker: pause calls while they keep failing"
        checked={fields.hasBreaker}
        onChange={(event) => change({ hasBreaker: event.currentTarget.checked })}
        data-testid="field-breaker"
      />
      <Select
        label="When it is unknown whether a message was delivered"
        data={[
          { value: "ask_first", label: "Ask the agent first" },
          { value: "same_message", label: "Resend the same message" },
          { value: "never", label: "Never resend" },
        ]}
        allowDeselect={false}
        value={fields.resend}
        onChange={(resend) => change({ resend: resend ?? "ask_first" })}
        data-testid="field-resend"
      />
      <Switch
        label="Repeatable: the agent can safely receive the same task twice (required for shadow calls)"
        checked={fields.repeatable}
        onChange={(event) => change({ repeatable: event.currentTarget.checked })}
        data-testid="field-repeatable"
      />
    </Section>
  );
}

/** The server's validation errors for a field and its nested fields. */
function findings(error: unknown): (path: string) => string | null {
  const errors = error instanceof Problem ? error.errors : [];
  return (path) => {
    const found = errors.filter((each) => each.path === path || each.path.startsWith(`${path}.`));
    return found.length === 0 ? null : found.map(({ message }) => message).join(" ");
  };
}
