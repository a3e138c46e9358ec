/** Publishes an agent over A2A, and shows its card as callers see it. */

import { Stack, Switch, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";

import { api, body } from "../api/client.ts";
import { usePermission } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { PublishedCard } from "../publishing/PublishedCard.tsx";
import type { Agent } from "./queries.ts";

export function PublishPanel({ agent }: { agent: Agent }) {
  const queries = useQueryClient();
  const may = usePermission("admin");
  const change = useMutation({
    mutationFn: (publish: boolean) =>
      body(
        api.PATCH("/api/v1/agents/{agent}", { params: { path: { agent: agent.name } }, body: { publish } as never }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["agents"] }),
  });
  const isPublished = agent.publish !== null;
  return (
    <Stack gap="md">
      <Switch
        label="Published over A2A"
        description={
          may.allowed
            ? "Any A2A client can call the agent through Trunkline. Each call is a run that survives crashes."
            : may.reason
        }
        checked={isPublished}
        disabled={!may.allowed || change.isPending}
        onChange={(event) => change.mutate(event.currentTarget.checked)}
        data-testid="publish-switch"
      />
      {change.error !== null && <ProblemPanel error={change.error} />}
      {typeof agent.publish === "object" && isPublished && (
        <Text size="sm" c="dimmed">
          The card has options. They are removed when you stop publishing.
        </Text>
      )}
      {isPublished ? (
        <PublishedCard kind="agents" name={agent.name} />
      ) : (
        <Text size="sm" c="dimmed">
          The agent is not published. Options such as the card's name and skills can be set with{" "}
          <code>trunkline agents publish NAME --options FILE</code>.
        </Text>
      )}
    </Stack>
  );
}
