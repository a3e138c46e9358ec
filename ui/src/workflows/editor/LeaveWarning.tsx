/** Asks before a page with unsaved changes is left. */

import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useBlocker } from "@tanstack/react-router";

export function LeaveWarning({ isUnsaved, kept }: { isUnsaved: () => boolean; kept: boolean }) {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => current.pathname !== next.pathname && isUnsaved(),
    enableBeforeUnload: isUnsaved,
    withResolver: true,
  });
  const stay = () => blocker.reset?.();
  return (
    <Modal opened={blocker.status === "blocked"} onClose={stay} title="Your changes are not saved" centered>
      <Stack gap="md" data-testid="leave-warning">
        <Text size="sm">
          {kept
            ? "They are kept in this browser tab: come back to the editor here, and they are there. Nobody else can see them."
            : "This browser could not keep them: if you leave, they are lost."}
        </Text>
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={() => blocker.proceed?.()} data-testid="leave">
            Leave
          </Button>
          <Button onClick={stay} data-testid="stay" data-autofocus>
            Stay
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
