/** Shown instead of a page that failed to render; the navigation still works. */

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
        This page can't be displayed
      </Title>
      <ProblemPanel error={error} again={again} />
    </Stack>
  );
}
