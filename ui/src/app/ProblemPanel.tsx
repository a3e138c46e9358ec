/** What went wrong, why, what to do about it, and the id to find it by in the logs. */

import { Alert, Button, Code, Group, List, Stack, Text } from "@mantine/core";
import { TriangleAlert } from "lucide-react";

import { useConnection } from "../api/connection.ts";
import { NoAnswer, Problem } from "../api/problem.ts";

export function ProblemPanel({ error, again }: { error: unknown; again?: () => void }) {
  const problem =
    error instanceof Problem
      ? error
      : new Problem({
          title: "This page has failed",
          status: 0,
          detail: error instanceof Error ? error.message : String(error),
          fix: "Load the page again; if that does not help, tell whoever runs Trunkline what is written here.",
        });
  const { answers } = useConnection();
  const fix = problem instanceof NoAnswer ? problem.adviceWhen(answers) : problem.fix;
  const title =
    problem instanceof NoAnswer && problem.wasPressed && answers ? "Trunkline did not answer" : problem.title;
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
              Correlation id <Code>{problem.correlationId}</Code>
            </Text>
          )}
        </Group>
      </Stack>
    </Alert>
  );
}
