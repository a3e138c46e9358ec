/** The agents and workflows that a workflow calls. */

import { Group, Text } from "@mantine/core";

import { AnchorLink } from "../app/links.tsx";

export function AgentNames({
  agents,
  workflows,
  most = Infinity,
}: {
  agents: readonly string[];
  workflows: readonly string[];
  /** Above this number, the rest is only counted. */
  most?: number;
}) {
  const all = [
    ...agents.map((name) => ({ name, to: "/agents/$agent", params: { agent: name } })),
    ...workflows.map((name) => ({ name, to: "/workflows/$workflow", params: { workflow: name } })),
  ];
  const rest = all.slice(most);
  return (
    <Group gap="0 0.6em" wrap="wrap">
      {all.slice(0, most).map(({ name, to, params }) => (
        // The target route varies, so its parameters are checked by the caller.
        <AnchorLink
          key={`${to} ${name}`}
          to={to as never}
          params={params as never}
          size="sm"
          display="inline-block"
          lh="24px"
        >
          {name}
        </AnchorLink>
      ))}
      {rest.length > 0 && (
        <Text span size="sm" c="dimmed" title={rest.map(({ name }) => name).join(", ")}>
          and {rest.length} more
        </Text>
      )}
    </Group>
  );
}
