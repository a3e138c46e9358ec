import { Group, Stack, Text, Title } from "@mantine/core";

import { runRoute } from "../app/router.tsx";
import { StatusBadge } from "../app/StatusBadge.tsx";
import { useRunModel } from "./useRunModel.ts";

export function RunPage() {
  const { run } = runRoute.useParams();
  const { model, connection } = useRunModel(run);
  return (
    <Stack gap="sm">
      <Group>
        <Title order={1} size="h3">Run</Title>
        <StatusBadge status={model.status} />
        <Text size="sm" data-testid="connection">{connection}</Text>
      </Group>
      <ul>
        {[...model.steps.values()].map((step) => (
          <li key={step.name}>{step.name} <StatusBadge status={step.status} /></li>
        ))}
      </ul>
    </Stack>
  );
}
