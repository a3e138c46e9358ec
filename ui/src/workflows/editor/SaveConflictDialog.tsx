/** Asks for confirmation before saving over a newer version or an existing workflow. */

import { Button, Group, Modal, Stack, Text } from "@mantine/core";

import type { SaveConflict } from "./useSaving.ts";

export function SaveConflictDialog({
  conflict,
  workflow,
  onCancel,
  onSave,
}: {
  conflict: SaveConflict | null;
  workflow: string | null;
  onCancel: () => void;
  onSave: () => void;
}) {
  if (conflict === null) return null;
  const isSame = conflict.name === workflow;
  return (
    <Modal
      opened
      onClose={onCancel}
      title={isSame ? "A newer version exists" : "A workflow with this name exists"}

      centered
    >
      <Stack gap="md" data-testid="conflict">
        <Text size="sm">
          {isSame
            ? `Version ${conflict.exists} was saved after you started editing. Your text does not include its changes, so saving reverts them.`
            : `The workflow ${conflict.name} exists at version ${conflict.exists}. Your text becomes its next version.`}
        </Text>
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onCancel} data-autofocus data-testid="do-not-save">
            Cancel
          </Button>
          <Button color="red.9" onClick={onSave} data-testid="save-anyway">
            Save as version {conflict.exists + 1}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
