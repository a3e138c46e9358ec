/** The call that starts a run, to copy. */

import { Button, Code, CopyButton, Popover, Stack, Text } from "@mantine/core";
import { Check, Copy, Terminal } from "lucide-react";

import { exampleOf, executeCurl } from "./execute.ts";
import type { Workflow } from "./queries.ts";

export function ExecuteCall({ workflow, version }: { workflow: Workflow; version: number | null }) {
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
        <Stack gap="xs">
          <Text size="sm">Starts a run{version === null ? "" : ` of version ${version}`}. Put your own input behind -d.</Text>
          <Code block tabIndex={0} data-testid="execute-curl">{call}</Code>
          <CopyButton value={call}>
            {({ copied, copy }) => (
              <Button
                size="xs"
                variant="light"
                leftSection={copied ? <Check size={14} aria-hidden /> : <Copy size={14} aria-hidden />}
                onClick={copy}
                data-testid="copy-execute-call"
              >
                {copied ? "Copied" : "Copy"}
              </Button>
            )}
          </CopyButton>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
