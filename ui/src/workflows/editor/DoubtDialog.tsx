/** Asks before saving does something that the writer may not mean. */

import { Button, Group, Modal, Stack, Text } from "@mantine/core";

import type { Doubt } from "./useSaving.ts";

export function DoubtDialog({
  doubt,
  workflow,
  onCancel,
  onSave,
}: {
  doubt: Doubt | null;
  workflow: string | null;
  onCancel: () => void;
  onSave: () => void;
}) {
  if (doubt === null) return null;
  const isSame = doubt.name === workflow;
  return (
    <Modal
      opened
      onClose={onCancel}
      title={isSame ? "Somebody has saved a version meanwhile" : "There is such a workflow already"}

      centered
    >
      <Stack gap="md" data-testid="doubt">
        <Text size="sm">
          {isSame
            ? `Version ${doubt.exists} was saved after you began. What it changed is not in your text: saving yours takes it back.`
            : `${doubt.name} exists, at version ${doubt.exists}. Saving makes your text its next version.`}
        </Text>
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onCancel} data-autofocus data-testid="do-not-save">
            Do not save
          </Button>
          <Button color="red.9" onClick={onSave} data-testid="save-anyway">
            Save as version {doubt.exists + 1}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
