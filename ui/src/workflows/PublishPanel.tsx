/** Publishes the latest version of a workflow over A2A, and shows its card as callers see it. */

import { Stack, Text } from "@mantine/core";

import { api, body } from "../api/client.ts";
import { PublishedCard } from "../publishing/PublishedCard.tsx";
import { PublishSwitch } from "../publishing/PublishSwitch.tsx";
import type { Workflow } from "./queries.ts";

export function PublishPanel({ workflow, isLatest }: { workflow: Workflow; isLatest: boolean }) {
  const publish = workflow.definition["publish"];
  const isPublished = Boolean(publish);
  if (!isLatest) {
    return (
      <Text size="sm" c="dimmed">
        Callers get the latest version. Select it to publish the workflow or to see its card.
      </Text>
    );
  }
  return (
    <Stack gap="md">
      <PublishSwitch
        checked={isPublished}
        description="Any A2A client can call the workflow. A change saves a new version of its definition."
        refresh="workflows"
        change={(wanted) =>
          body(
            api.PUT("/api/v1/workflows/{workflow}/publish", {
              params: { path: { workflow: workflow.name } },
              body: { publish: wanted },
            }),
          )
        }
      />
      {typeof publish === "object" && publish !== null && (
        <Text size="sm" c="dimmed">
          The card has options. They are removed when you stop publishing.
        </Text>
      )}
      {isPublished ? (
        <PublishedCard kind="workflows" name={workflow.name} />
      ) : (
        <Text size="sm" c="dimmed">
          The workflow is not published. Options such as the card's name and skills are part of its definition.
        </Text>
      )}
    </Stack>
  );
}
