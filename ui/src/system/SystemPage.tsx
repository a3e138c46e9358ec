/** The system page: overview, dead letters, audit log and API keys. */

import { Group, Stack, Tabs, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { systemRoute, type SystemTab } from "../app/router.tsx";
import { Audit } from "./Audit.tsx";
import { DeadLetters } from "./DeadLetters.tsx";
import { Keys } from "./Keys.tsx";
import { Overview } from "./Overview.tsx";
import { systemQuery } from "./queries.ts";
import classes from "./system.module.css";
import { counted } from "./labels.ts";

export function SystemPage() {
  const { tab = "overview" } = systemRoute.useSearch();
  const navigate = useNavigate({ from: "/system" });
  const query = useQuery(systemQuery);
  const system = query.data;
  const letters = system?.queues?.find((queue) => queue.name === "dead_letters");
  return (
    <Stack gap="sm">
      <Group justify="space-between" gap="xs">
        <Title order={1} size="h3">
          System
        </Title>
        {system !== undefined && (
          <Text size="sm" c="dimmed" data-testid="version">
            Trunkline {system.version} · {system.mode} · {STORES[system.store]}
            {system.broker === "kafka" ? " and Kafka" : ""}
          </Text>
        )}
      </Group>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      <Tabs
        value={tab}
        onChange={(next) =>
          void navigate({ search: next === null || next === "overview" ? {} : { tab: next as SystemTab } })
        }
        keepMounted={false}
      >
        <Tabs.List aria-label="System">
          <Tabs.Tab value="overview" data-testid="tab-overview">
            Overview
          </Tabs.Tab>
          <Tabs.Tab
            value="letters"
            data-testid="tab-letters"
            rightSection={
              letters === undefined || letters.count === 0 ? null : (
                <span className={classes["count"]} data-testid="letters-count">
                  {counted(letters)}
                </span>
              )
            }
          >
            Dead letters
          </Tabs.Tab>
          <Tabs.Tab value="audit" data-testid="tab-audit">
            Audit log
          </Tabs.Tab>
          <Tabs.Tab value="keys" data-testid="tab-keys">
            API keys
          </Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="overview" pt="md">
          <Overview system={system} />
        </Tabs.Panel>
        <Tabs.Panel value="letters" pt="md">
          <DeadLetters system={system} />
        </Tabs.Panel>
        <Tabs.Panel value="audit" pt="md">
          <Audit />
        </Tabs.Panel>
        <Tabs.Panel value="keys" pt="md">
          <Keys />
        </Tabs.Panel>
      </Tabs>
    </Stack>
  );
}

const STORES = { sqlite: "SQLite", postgresql: "PostgreSQL" } as const;
