/** Lets in whom the server lets in; everybody else is asked for a key first, whatever page they are on. */

import { Button, Code, Group, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound } from "lucide-react";
import { useEffect, useId, useState, type ReactNode } from "react";

import { api, body } from "../api/client.ts";
import { key } from "../api/key.ts";
import { Problem } from "../api/problem.ts";
import { beginAnew, callerQuery } from "./access.ts";
import classes from "./KeyGate.module.css";

const REFUSED = 401;

export function KeyGate({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const { error, isPending } = useQuery(callerQuery);
  useEffect(
    () =>
      key.onDoubt(() => void queries.invalidateQueries({ queryKey: callerQuery.queryKey }, { cancelRefetch: false })),
    [queries],
  );
  useEffect(() => key.subscribe(() => void beginAnew(queries)), [queries]);
  if (error instanceof Problem && error.status === REFUSED)
    return <KeyDialog refusal={key.read() === null ? null : error} />;
  // A server that does not answer is told of by the pages themselves.
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
              Trunkline asks for a key
            </Title>
          </Group>
          <Text size="sm">
            This server lets in who has one of its API keys. Your open tabs share the key; it is forgotten when the last
            of them is closed.
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
            visibilityToggleButtonProps={{ "aria-label": "Show or hide the key" }}
            data-testid="key"
          />
          <Group justify="space-between" gap="sm">
            <Text size="xs" c="dimmed">
              One is made with <Code>trunkline keys create NAME --role viewer</Code>
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
      {error.message}{" "}
      {refused ? "Check that you have copied all of it, or ask who runs Trunkline for another one." : ""}
    </span>
  );
}
