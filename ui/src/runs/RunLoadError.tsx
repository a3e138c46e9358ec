/** Shown when a run cannot be loaded, for example because it does not exist. */

import { Stack, Text, Title } from "@mantine/core";

import { Problem } from "../api/problem.ts";
import { AnchorLink } from "../app/links.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";

export function RunLoadError({ error, again }: { error: Error; again: () => void }) {
  return (
    <Stack gap="sm" maw={760}>
      <Title order={1} size="h3">
        Run
      </Title>
      <ProblemPanel error={error} again={again} />
      {error instanceof Problem && error.status === 404 && (
        <Text size="sm" data-testid="run-missing">
          The ID may be mistyped, or the run was deleted: finished runs are kept only for a limited time.{" "}
          <AnchorLink to="/runs" search={{}} size="sm" underline="always">
            View all runs
          </AnchorLink>
          .
        </Text>
      )}
    </Stack>
  );
}
