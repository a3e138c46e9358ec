/** The failure of a run or a step: message, fix, whether the agent was reached, and what happens next. */

import { Alert, Anchor, Code, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { CircleX } from "lucide-react";
import type { ReactNode } from "react";

import { api, body } from "../../api/client.ts";
import { ChildLink, childRunIn } from "../ChildLink.tsx";
import type { Failure } from "./attemptErrors.ts";
import { JsonTree } from "./JsonTree.tsx";

const REACHED: Readonly<Record<"no" | "maybe" | "yes", string>> = {
  no: "The request did not reach the agent.",
  maybe: "The request was sent, but no response arrived. The next attempt repeats the same message with the same ID.",
  yes: "The agent responded. The next attempt is a new message with a new ID.",
};

export function FailureView({ failure, title, next }: { failure: Failure; title: string; next: ReactNode }) {
  const codes = useQuery({
    queryKey: ["error-codes"],
    queryFn: ({ signal }) => body(api.GET("/api/v1/error-codes", { signal })),
    staleTime: Infinity,
  });
  const known = codes.data?.items.find((each) => each.code === failure.code);
  const child = childRunIn(failure);
  // A child run does not call an agent itself.
  const isOfChild = failure.code.startsWith("child_");
  const facts = [
    failure.http_status === null || failure.http_status === undefined ? null : `HTTP ${failure.http_status}`,
    failure.jsonrpc_code === null || failure.jsonrpc_code === undefined ? null : `JSON-RPC ${failure.jsonrpc_code}`,
  ].filter((fact) => fact !== null);
  return (
    <Alert color="red" variant="light" icon={<CircleX size={18} />} title={title} data-testid="failure">
      <Stack gap="xs">
        <Group gap="xs">
          <Code data-testid="error-code">{failure.code}</Code>
          {facts.map((fact) => (
            <Text key={fact} size="xs">
              {fact}
            </Text>
          ))}
        </Group>
        <Text size="sm" style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }} data-testid="error-message">
          {failure.message}
        </Text>
        {failure.fix !== "" && (
          <Text size="sm" fw={600} data-testid="error-fix">
            {failure.fix}
          </Text>
        )}
        {child !== null && <ChildLink run={child} />}
        {known !== undefined && !isOfChild && (
          <Text size="sm" data-testid="error-reached">
            {REACHED[known.reached_agent]}
          </Text>
        )}
        {failure.fix === "" && known !== undefined && known.fix_command === null && (
          <Text size="sm" data-testid="error-in-general">
            {known.fix}
          </Text>
        )}
        {next !== null && (
          <Text size="sm" component="div" data-testid="error-next">
            {next}
          </Text>
        )}
        {failure.detail !== null && failure.detail !== undefined && (
          <JsonTree value={failure.detail} root="detail" label="error details" />
        )}
      </Stack>
    </Alert>
  );
}

export function ToWire({ onTab }: { onTab: (tab: string) => void }) {
  return (
    <Anchor component="button" type="button" size="sm" ta="left" onClick={() => onTab("wire")} data-testid="to-wire">
      View exchanges
    </Anchor>
  );
}
