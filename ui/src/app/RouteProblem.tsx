/** A page that has failed: the rest of the frame still works. */

import { Stack, Title } from "@mantine/core";
import { useRouter, type ErrorComponentProps } from "@tanstack/react-router";

import { ProblemPanel } from "./ProblemPanel.tsx";

export function RouteProblem({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  const again = () => {
    reset();
    void router.invalidate();
  };
  return (
    <Stack gap="sm" data-testid="route-problem">
      <Title order={1} size="h3">
        This page cannot be shown
      </Title>
      <ProblemPanel error={error} again={again} />
    </Stack>
  );
}
