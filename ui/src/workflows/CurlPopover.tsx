/** A button that shows the curl command that starts a run. */

import { Button, Code, Popover, Stack, Text } from "@mantine/core";
import { Terminal } from "lucide-react";

import { CopyTextButton } from "../app/CopyTextButton.tsx";
import { exampleOf } from "./exampleInput.ts";
import { executeCurl } from "./executeCurl.ts";
import type { Workflow } from "./queries.ts";

export function CurlPopover({ workflow, version }: { workflow: Workflow; version: number | null }) {
  const input = exampleOf(workflow.definition["input"]);
  const call = executeCurl(workflow.name, version, input);
  return (
    <Popover position="bottom-end" shadow="md" width="min(40rem, 90vw)" withArrow trapFocus>
      <Popover.Target>
        <Button variant="default" leftSection={<Terminal size={16} aria-hidden />} data-testid="execute-call">
          curl
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs" align="flex-start">
          <Text size="sm">
            Starts a run{version === null ? "" : ` of version ${version}`}. Replace the input after -d.
          </Text>
          <Code block w="100%" tabIndex={0} data-testid="execute-curl">
            {call}
          </Code>
          <CopyTextButton text={call} label="Copy" testid="copy-execute-call" />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
