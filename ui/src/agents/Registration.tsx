/** How an agent is registered. Its secret never leaves the server: only that there is one is known here. */

import { Title } from "@mantine/core";
import type { ReactNode } from "react";

import { Timestamp } from "../app/Timestamp.tsx";
import classes from "./agents.module.css";
import type { Agent } from "./queries.ts";

export function Registration({ agent }: { agent: Agent }) {
  const facts: readonly (readonly [string, ReactNode])[] = [
    ["Address", agent.url],
    ["Protocol", agent.protocol === "auto" ? "auto: asked for its card" : agent.protocol],
    ...(agent.protocol_config === null ? [] : [["Protocol settings", JSON.stringify(agent.protocol_config)] as const]),
    [
      "Credentials",
      agent.auth_type === "none" ? "None" : `${agent.auth_type}; the secret is stored encrypted and never shown`,
    ],
    ["Transport", agent.transport],
    ...(agent.pool === null ? [] : [["Pool", agent.pool] as const]),
    ["When in doubt", RESEND[agent.resend]],
    ...(agent.endpoint_override === null ? [] : [["Called at instead", agent.endpoint_override] as const]),
    ...(agent.allow_card_origin.length === 0 ? [] : [["Card may name", agent.allow_card_origin.join(", ")] as const]),
    ["Repeatable", agent.repeatable ? "Yes: the same work may be given to it twice" : "No"],
    ["Registered", <Timestamp key="created" at={agent.created_at} />],
    ["Changed", <Timestamp key="updated" at={agent.updated_at} />],
    ["Id", agent.id],
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
  same_message: "The same message is sent again",
  ask_first: "It is asked first whether it has the message",
  never: "It is never called twice",
};
