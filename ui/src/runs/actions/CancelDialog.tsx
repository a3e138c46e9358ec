/** Asks for confirmation before a run is cancelled, which cannot be undone. */

import { Button, Group, Modal, Stack, Text } from "@mantine/core";

import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import type { RunModel } from "../model.ts";
import { refusal, useRunCommands } from "./runCommands.ts";

export function CancelDialog({
  run,
  model,
  opened,
  onClose,
}: {
  run: string;
  model: RunModel;
  opened: boolean;
  onClose: () => void;
}) {
  const steering = useRunCommands(run);
  const under = [...model.steps.values()].filter(
    (step) => step.status === "RUNNING" || step.status === "WAITING",
  ).length;
  const ended = refusal("cancel", model);
  const leave = () => {
    steering.reset();
    onClose();
  };
  return (
    <Modal opened={opened} onClose={leave} title="Cancel this run?">
      <Stack gap="sm" data-testid="cancel-dialog">
        <Text size="sm">
          {under === 0
            ? "No steps are in progress. "
            : `${under === 1 ? "One step is" : `${under} steps are`} in progress. Agents that support cancellation are notified. `}
          Work that is already done is not undone.
        </Text>
        <Text size="sm">
          A cancelled run cannot be resumed. You can retry it as a new run that reuses the completed steps.
        </Text>
        {ended !== null && (
          <Text size="sm" fw={600} role="status">
            {ended}
          </Text>
        )}
        {steering.error !== null && <ProblemPanel error={steering.error} />}
        <Group justify="flex-end" gap="sm">
          <Button variant="default" onClick={leave} data-autofocus>
            Keep running
          </Button>
          <Button
            color="red.9"
            loading={steering.isPending}
            disabled={ended !== null}
            onClick={() => steering.mutate("cancel", { onSuccess: onClose })}
            data-testid="confirm-cancel"
          >
            Cancel run
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
