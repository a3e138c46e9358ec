/** There is no such run: why that may be, and where to go on. */

import { Stack, Text, Title } from "@mantine/core";

import { Problem } from "../api/problem.ts";
import { AnchorLink } from "../app/links.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";

export function RunMissing({ error, again }: { error: Error; again: () => void }) {
  return (
    <Stack gap="sm" maw={760}>
      <Title order={1} size="h3">
        Run
      </Title>
      <ProblemPanel error={error} again={again} />
      {error instanceof Problem && error.status === 404 && (
        <Text size="sm" data-testid="run-missing">
          The id may be mistyped, or the run has ended long ago and was deleted: finished runs are kept only for a
          while.{" "}
          <AnchorLink to="/runs" search={{}} size="sm" underline="always">
            See the runs that there are
          </AnchorLink>
          .
        </Text>
      )}
    </Stack>
  );
}
