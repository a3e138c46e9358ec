/** The A2A message that started a run: who sent it, and what it says. */

import { Anchor, Code, Popover, Stack, Text } from "@mantine/core";

import type { components } from "../api/schema.d.ts";
import { escapeBidi } from "../app/bidi.ts";
import { JsonTree } from "./inspector/JsonTree.tsx";
import classes from "./RunPage.module.css";

type CallerMessage = components["schemas"]["CallerMessage"];

export function CallerFact({ message }: { message: CallerMessage }) {
  return (
    <Popover width={460} position="bottom-start" withArrow shadow="md" trapFocus>
      <Popover.Target>
        <Anchor component="button" type="button" inherit data-testid="caller-message">
          A2A {message.version}
        </Anchor>
      </Popover.Target>
      <Popover.Dropdown className={classes["message"]} data-testid="caller-message-content">
        <Stack gap="xs">
          <Text size="sm">
            {message.key === null ? "Called without an API key" : `Called with the API key ${escapeBidi(message.key)}`}{" "}
            as <Code>{escapeBidi(message.publication)}</Code>
          </Text>
          <JsonTree value={message} root="message" label="Message" />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
