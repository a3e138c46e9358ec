/** How Trunkline has found out what the agent speaks: what it tried, what was answered, what it took for proof. */

import { Anchor, Collapse, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { api, body } from "../api/client.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import classes from "./wire.module.css";

export function Negotiation({ agent, protocol }: { agent: string; protocol: string | null }) {
  const [open, setOpen] = useState(false);
  return (
    <div data-testid="negotiation">
      <Text size="sm">
        {protocol === null ? `What ${agent} speaks is not known yet.` : `${agent} was spoken to in ${protocol}.`}{" "}
        <Anchor
          component="button"
          type="button"
          size="sm"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
          data-testid="why-dialect"
        >
          {open ? "Hide why" : "Why?"}
        </Anchor>
      </Text>
      <Collapse expanded={open}>{open && <Evidence agent={agent} />}</Collapse>
    </div>
  );
}

function Evidence({ agent }: { agent: string }) {
  const query = useQuery({
    queryKey: ["agent", agent],
    queryFn: ({ signal }) => body(api.GET("/api/v1/agents/{agent}", { params: { path: { agent } }, signal })),
  });
  if (query.error !== null) return <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  if (query.data === undefined) return null;
  const { dialect, protocol } = query.data;
  if (protocol !== "auto") {
    return (
      <Text size="sm" mt={4} data-testid="evidence">
        The agent is registered with the protocol {protocol}, so nothing was tried out.
      </Text>
    );
  }
  if (dialect === null)
    return (
      <Text size="sm" mt={4} data-testid="evidence">
        Nothing is kept of how that was found out: the agent has changed since.
      </Text>
    );
  return (
    <Stack gap={4} mt={4} data-testid="evidence">
      <Text size="sm">
        Now it is {dialect.protocol}: {dialect.evidence}.
      </Text>
      {dialect.tried.length > 0 && (
        <table className={classes["headers"]} aria-label="What was tried">
          <tbody>
            {dialect.tried.map((probe, place) => (
              <tr key={place}>
                <th scope="row">{probe.tried}</th>
                <td>{probe.answered}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Stack>
  );
}
