/** Publishes an agent over A2A, and shows its card as callers see it. */

import { Stack, Text } from "@mantine/core";

import { api, body } from "../api/client.ts";
import { PublishedCard } from "../publishing/PublishedCard.tsx";
import { PublishSwitch } from "../publishing/PublishSwitch.tsx";
import type { Agent } from "./queries.ts";

export function PublishPanel({ agent }: { agent: Agent }) {
  const isPublished = agent.publish !== null;
  return (
    <Stack gap="md">
      <PublishSwitch
        checked={isPublished}
        description="Any A2A client can call the agent through Trunkline. Each call is a run that survives crashes."
        refresh="agents"
        change={(publish) =>
          body(
            api.PATCH("/api/v1/agents/{agent}", {
              params: { path: { agent: agent.name } },
              body: { publish } as never,
            }),
          )
        }
      />
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
