/** The target of a migration. Empty fields keep their value. */

import { Group, Select, TextInput } from "@mantine/core";

import type { Status } from "./queries.ts";

export interface TargetForm {
  readonly url: string;
  readonly protocol: string | null;
}

const DEFAULT_PROTOCOL = "jsonrpc-2.0";
const PROTOCOLS = [
  "jsonrpc-2.0",
  "jsonrpc-call",
  "a2a-0.1",
  "a2a-0.1-paths",
  "a2a-0.2",
  "a2a-0.3",
  "a2a-1.0",
  "simple-a2a",
];

interface Props {
  readonly status: Status;
  readonly value: TargetForm;
  readonly onChange: (value: TargetForm) => void;
}

export function TargetFields({ status, value, onChange }: Props) {
  const named = status.migration?.stage === "finished" ? null : (status.migration?.target ?? null);
  return (
    <Group grow align="start" gap="sm">
      <TextInput
        label="Target URL"
        description={
          named === null ? "If empty, the agent’s URL is used." : "Leave empty to keep the current target URL."
        }
        placeholder={named?.url ?? status.url}
        value={value.url}
        onChange={(event) => onChange({ ...value, url: event.currentTarget.value })}
        data-testid="target-url"
      />
      <Select
        label="Target protocol"
        description={
          named === null ? "If empty, JSON-RPC 2.0 is used." : "Leave empty to keep the current target protocol."
        }
        placeholder={named?.protocol ?? DEFAULT_PROTOCOL}
        data={PROTOCOLS}
        value={value.protocol}
        onChange={(protocol) => onChange({ ...value, protocol })}
        clearable
        data-testid="target-protocol"
      />
    </Group>
  );
}
