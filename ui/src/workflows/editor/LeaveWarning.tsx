/** Asks for confirmation before leaving a page with unsaved changes. */

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
    <Modal opened={blocker.status === "blocked"} onClose={stay} title="Unsaved changes" centered>
      <Stack gap="md" data-testid="leave-warning">
        <Text size="sm">
          {kept
            ? "Your changes are kept only in this browser tab. Return to the editor in this tab to continue."
            : "This browser cannot keep your changes. If you leave, they are lost."}
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
