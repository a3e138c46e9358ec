/** Asks before a run is cancelled: there is no way back. */

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
            ? "No step is under way. "
            : `${under === 1 ? "One step is" : `${under} steps are`} under way; agents that can be told to stop are told. `}
          What they have done already stays done.
        </Text>
        <Text size="sm">
          A cancelled run does not go on. It can be retried as a new run, which keeps what was completed.
        </Text>
        {ended !== null && (
          <Text size="sm" fw={600} role="status">
            {ended}
          </Text>
        )}
        {steering.error !== null && <ProblemPanel error={steering.error} />}
        <Group justify="flex-end" gap="sm">
          <Button variant="default" onClick={leave} data-autofocus>
            Keep it running
          </Button>
          <Button
            color="red.9"
            loading={steering.isPending}
            disabled={ended !== null}
            onClick={() => steering.mutate("cancel", { onSuccess: onClose })}
            data-testid="confirm-cancel"
          >
            Cancel the run
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
