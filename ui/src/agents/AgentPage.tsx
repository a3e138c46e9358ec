/** One agent: its health and settings, recent calls, card, checks, and test calls. */

import { Group, Stack, Tabs, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { Loading } from "../app/Loading.tsx";
import { AnchorLink } from "../app/links.tsx";
import { escapeBidi } from "../app/bidi.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { agentRoute, type AgentSearch } from "../app/router.tsx";
import { TabStrip } from "../app/TabStrip.tsx";
import { StageBadge } from "../migration/StageBadge.tsx";
import { AgentActions } from "./AgentActions.tsx";
import classes from "./agents.module.css";
import { CallsPanel } from "./CallsPanel.tsx";
import { CardPanel } from "./CardPanel.tsx";
import { ChecksPanel } from "./ChecksPanel.tsx";
import { HealthCheckMark } from "./HealthCheckMark.tsx";
import { BreakerBadge, HealthBadge } from "./Badges.tsx";
import { Overview } from "./Overview.tsx";
import { PublishPanel } from "./PublishPanel.tsx";
import { activityQuery, type Agent, agentQuery, HOUR } from "./queries.ts";
import { breakerOf, dialectOf, healthOf } from "./health.ts";
import { TestCallPanel } from "./TestCallPanel.tsx";

type Tab = NonNullable<AgentSearch["tab"]> | "overview";

const TABS: readonly (readonly [Tab, string])[] = [
  ["overview", "Overview"],
  ["calls", "Calls"],
  ["card", "Card"],
  ["checks", "Checks"],
  ["try", "Test call"],
  ["publish", "Publish"],
];

export function AgentPage() {
  const { agent } = agentRoute.useParams();
  const query = useQuery(agentQuery(agent));
  if (query.data === undefined && query.error !== null) {
    return (
      <Stack gap="sm">
        <Title order={1} size="h3" className={classes["name"]}>
          {agent}
        </Title>
        <ProblemPanel error={query.error} again={() => void query.refetch()} />
        <AnchorLink to="/agents" search={{}} size="sm">
          All agents
        </AnchorLink>
      </Stack>
    );
  }
  if (query.data === undefined) return <Loading />;
  return <Shown agent={query.data} />;
}

function Shown({ agent }: { agent: Agent }) {
  const { tab = "overview" } = agentRoute.useSearch();
  const navigate = useNavigate({ from: "/agents/$agent" });
  return (
    <Stack gap="sm">
      <Head agent={agent} />
      <Tabs
        className={classes["tabs"]}
        value={tab}
        onChange={(next) =>
          void navigate({ search: next === "overview" ? {} : { tab: next as AgentSearch["tab"] & string } })
        }
        keepMounted={false}
      >
        <TabStrip chosen={tab}>
          {TABS.map(([value, word]) => (
            <Tabs.Tab key={value} value={value} data-testid={`tab-${value}`}>
              {word}
            </Tabs.Tab>
          ))}
        </TabStrip>
        <Tabs.Panel value="overview" pt="sm">
          <Overview agent={agent} />
        </Tabs.Panel>
        <Tabs.Panel value="calls" pt="sm">
          <CallsPanel agent={agent.name} />
        </Tabs.Panel>
        <Tabs.Panel value="card" pt="sm">
          <CardPanel agent={agent} />
        </Tabs.Panel>
        <Tabs.Panel value="checks" pt="sm">
          <ChecksPanel agent={agent} />
        </Tabs.Panel>
        <Tabs.Panel value="try" pt="sm">
          <TestCallPanel agent={agent} />
        </Tabs.Panel>
        <Tabs.Panel value="publish" pt="sm">
          <PublishPanel agent={agent} />
        </Tabs.Panel>
      </Tabs>
    </Stack>
  );
}

function Head({ agent }: { agent: Agent }) {
  const activity = useQuery(activityQuery(agent.name, HOUR));
  return (
    <Stack gap={4}>
      <Group justify="space-between" align="flex-start" gap="sm">
        <Group gap="md">
          <Title order={1} size="h3" className={classes["name"]} data-testid="agent-name">
            {escapeBidi(agent.name)}
          </Title>
          {activity.data !== undefined && <HealthBadge standing={healthOf(activity.data)} />}
          <HealthCheckMark agent={agent.name} />
          <BreakerBadge breaker={breakerOf(agent)} />
        </Group>
        <AgentActions agent={agent} />
      </Group>
      {agent.description !== null && (
        <Text size="sm" className={classes["wrap"]}>
          {agent.description}
        </Text>
      )}
      <Group gap="md">
        <Text size="sm" c="dimmed" className={classes["wrap"]}>
          {dialectOf(agent)} · {agent.url}
        </Text>
        <Group gap={6}>
          <AnchorLink to="/migration/$agent" params={{ agent: agent.name }} size="sm" data-testid="to-migration">
            Migration
          </AnchorLink>
          {agent.migration != null && <StageBadge stage={agent.migration.stage} />}
        </Group>
      </Group>
    </Stack>
  );
}
