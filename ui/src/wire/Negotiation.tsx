/** The negotiation of the agent's dialect: the probes, their responses, and the evidence. */

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
        {protocol === null ? `The dialect of ${agent} is not detected yet.` : `${agent} was called with ${protocol}.`}{" "}
        <Anchor
          component="button"
          type="button"
          size="sm"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
          data-testid="why-dialect"
        >
          {open ? "Hide evidence" : "Show evidence"}
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
        The agent is registered with the protocol {protocol}, so no detection was needed.
      </Text>
    );
  }
  if (dialect === null)
    return (
      <Text size="sm" mt={4} data-testid="evidence">
        No evidence is stored, because the agent was edited after the detection.
      </Text>
    );
  return (
    <Stack gap={4} mt={4} data-testid="evidence">
      <Text size="sm">
        Current dialect: {dialect.protocol}. Evidence: {dialect.evidence}.
      </Text>
      {dialect.tried.length > 0 && (
        <table className={classes["headers"]} aria-label="Probes">
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
