/** Shows an error: what went wrong, how to fix it, and the correlation id for the logs. */

import { Alert, Button, Code, Group, List, Stack, Text } from "@mantine/core";
import { TriangleAlert } from "lucide-react";

import { useConnection } from "../api/connection.ts";
import { NoResponseError, Problem } from "../api/problem.ts";

export function ProblemPanel({ error, again }: { error: unknown; again?: () => void }) {
  const problem =
    error instanceof Problem
      ? error
      : new Problem({
          title: "Something went wrong on this page",
          status: 0,
          detail: error instanceof Error ? error.message : String(error),
          fix: "Reload the page. If the error persists, report it to your administrator.",
        });
  const { answers } = useConnection();
  const fix = problem instanceof NoResponseError ? problem.adviceWhen(answers) : problem.fix;
  const title =
    problem instanceof NoResponseError && problem.wasPressed && answers ? "Trunkline did not respond" : problem.title;
  return (
    <Alert color="red" variant="light" icon={<TriangleAlert />} title={title} role="alert" data-testid="problem">
      <Stack gap="xs">
        <Text size="sm">{problem.message}</Text>
        {problem.errors.length > 0 && (
          <List size="sm">
            {problem.errors.map((finding, place) => (
              <List.Item key={place}>
                <Code>{finding.path}</Code> {finding.message}
              </List.Item>
            ))}
          </List>
        )}
        {fix !== "" && (
          <Text size="sm" fw={600}>
            {fix}
          </Text>
        )}
        <Group gap="md">
          {again !== undefined && (
            <Button size="xs" variant="default" onClick={again}>
              Try again
            </Button>
          )}
          {problem.correlationId !== null && (
            <Text size="xs">
              Correlation ID <Code>{problem.correlationId}</Code>
            </Text>
          )}
        </Group>
      </Stack>
    </Alert>
  );
}
