/** The settings of an agent. Credentials never leave the server: only their type is known here. */

import { Title } from "@mantine/core";
import type { ReactNode } from "react";

import { Timestamp } from "../app/Timestamp.tsx";
import classes from "./agents.module.css";
import type { Agent } from "./queries.ts";

export function Registration({ agent }: { agent: Agent }) {
  const facts: readonly (readonly [string, ReactNode])[] = [
    ["URL", agent.url],
    ["Protocol", agent.protocol === "auto" ? "auto (detected)" : agent.protocol],
    ...(agent.protocol_config === null ? [] : [["Protocol options", JSON.stringify(agent.protocol_config)] as const]),
    [
      "Authentication",
      agent.auth_type === "none" ? "None" : `${agent.auth_type}; the credentials are stored encrypted and never shown`,
    ],
    ["Transport", agent.transport],
    ...(agent.pool === null ? [] : [["Pool", agent.pool] as const]),
    ["Unknown delivery", RESEND[agent.resend]],
    ...(agent.endpoint_override === null ? [] : [["Endpoint override", agent.endpoint_override] as const]),
    ...(agent.allow_card_origin.length === 0
      ? []
      : [["Allowed card origins", agent.allow_card_origin.join(", ")] as const]),
    ...(agent.tags.length === 0 ? [] : [["Tags", agent.tags.join(", ")] as const]),
    ...(agent.skills.length === 0 ? [] : [["Skills", agent.skills.join(", ")] as const]),
    ["Repeatable", agent.repeatable ? "Yes: the agent can safely receive the same task twice" : "No"],
    ["Registered", <Timestamp key="created" at={agent.created_at} />],
    ["Updated", <Timestamp key="updated" at={agent.updated_at} />],
    ["ID", agent.id],
  ];
  return (
    <section className={classes["box"]} aria-labelledby="registration-heading" data-testid="registration">
      <Title order={2} size="h5" mb="xs" id="registration-heading">
        Registration
      </Title>
      <dl className={classes["facts"]}>
        {facts.map(([name, value]) => (
          <Fact key={name} name={name} value={value} />
        ))}
      </dl>
    </section>
  );
}

function Fact({ name, value }: { name: string; value: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

const RESEND: Record<Agent["resend"], string> = {
  same_message: "Resend the same message",
  ask_first: "Ask the agent first",
  never: "Never resend",
};
