/** Asks for an API key before any page is shown, if the server requires one. */

import { Button, Code, Group, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound } from "lucide-react";
import { useEffect, useId, useState, type ReactNode } from "react";

import { api, body } from "../api/client.ts";
import { key } from "../api/apiKey.ts";
import { Problem } from "../api/problem.ts";
import { clearCachedData, callerQuery } from "./permissions.ts";
import classes from "./KeyGate.module.css";

const REFUSED = 401;

export function KeyGate({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const { error, isPending } = useQuery(callerQuery);
  useEffect(
    () =>
      key.onRecheck(() => void queries.invalidateQueries({ queryKey: callerQuery.queryKey }, { cancelRefetch: false })),
    [queries],
  );
  useEffect(() => key.subscribe(() => void clearCachedData(queries)), [queries]);
  if (error instanceof Problem && error.status === REFUSED)
    return <KeyDialog refusal={key.read() === null ? null : error} />;
  // If the server is unreachable, the pages show that themselves.
  return isPending ? null : children;
}

function KeyDialog({ refusal }: { refusal: Problem | null }) {
  const heading = useId();
  const [text, setText] = useState("");
  const entering = useMutation({
    mutationFn: (given: string) => body(api.GET("/api/v1/me", { headers: { Authorization: `Bearer ${given}` } })),
    onSuccess: (_, given) => key.write(given),
  });
  const wrong = entering.error ?? refusal;
  return (
    <Paper
      component="section"
      withBorder
      p="lg"
      className={classes["dialog"]}
      role="dialog"
      aria-labelledby={heading}
      data-testid="key-dialog"
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() !== "") entering.mutate(text.trim());
        }}
      >
        <Stack gap="sm">
          <Group gap="xs" wrap="nowrap">
            <KeyRound size={20} aria-hidden />
            <Title order={1} size="h3" id={heading}>
              Sign in with an API key
            </Title>
          </Group>
          <Text size="sm">
            This server requires an API key. Your open tabs share the key. It is forgotten when you close the last one.
          </Text>
          <PasswordInput
            label="API key"
            autoComplete="off"
            spellCheck={false}
            data-autofocus
            autoFocus
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            error={wrong === null ? undefined : wrongKey(wrong)}
            visibilityToggleButtonProps={{ "aria-label": "Show or hide the API key" }}
            data-testid="key"
          />
          <Group justify="space-between" gap="sm">
            <Text size="xs" c="dimmed">
              Create one with <Code>trunkline keys create NAME --role viewer</Code>
            </Text>
            <Button type="submit" loading={entering.isPending} data-testid="enter">
              Continue
            </Button>
          </Group>
        </Stack>
      </form>
    </Paper>
  );
}

function wrongKey(error: Error): ReactNode {
  const refused = error instanceof Problem && error.status === REFUSED;
  return (
    <span data-testid="key-wrong">
      {error.message} {refused ? "Check that you copied the whole key, or ask your administrator for a new one." : ""}
    </span>
  );
}
