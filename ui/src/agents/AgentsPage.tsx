/** The list of agents: dialect, health, and activity in the last hour. */

import { Button, Code, CopyButton, Group, Select, Stack, Table, Text, TextInput, Title } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Check, Copy, Plus, Search } from "lucide-react";
import { useState } from "react";

import { usePermission } from "../app/permissions.ts";
import { Loading } from "../app/Loading.tsx";
import { AnchorLink } from "../app/links.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { agentsRoute, type AgentsSearch } from "../app/router.tsx";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import { AgentRow } from "./AgentRow.tsx";
import classes from "./agents.module.css";
import { healthLabel } from "./Badges.tsx";
import { type Agent, agentsQuery } from "./queries.ts";
import { dialectOf, type AgentHealth, healthOf, HEALTH_STATES } from "./health.ts";

const TYPING_MS = 200;
// Rows shown at first; a button shows more.
const ROWS = 200;
const REGISTER = "trunkline agents create my-agent http://localhost:8080/agent";

export function AgentsPage() {
  const search = agentsRoute.useSearch();
  const navigate = useNavigate();
  const may = usePermission("admin");
  const query = useQuery(agentsQuery);
  const agents = query.data?.agents ?? [];
  const shown = agents.filter((agent) => isMeant(agent, search));
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={1} size="h3">
          Agents
        </Title>
        <ActionButton
          icon={Plus}
          refused={may.allowed ? null : may.reason}
          filled
          size="sm"
          onPress={() => void navigate({ to: "/new-agent" })}
          testId="new-agent"
        >
          Register an agent
        </ActionButton>
      </Group>
      {agents.length > 0 && <Filters agents={agents} />}
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.isSuccess && agents.length === 0 && <NoAgents />}
      {agents.length > 0 && shown.length === 0 && (
        <Group gap="xs" data-testid="no-agents">
          <Text>No matching agents.</Text>
          <AnchorLink to="/agents" search={{}}>
            Clear filters
          </AnchorLink>
        </Group>
      )}
      {shown.length > 0 && <AgentTable agents={shown} of={agents.length} />}
      {query.data?.areAll === false && (
        <Text size="sm" c="dimmed">
          Only the first {agents.length.toLocaleString()} agents are shown.
        </Text>
      )}
    </Stack>
  );
}

function isMeant(agent: Agent, { q, speaks, state }: AgentsSearch): boolean {
  if (speaks !== undefined && dialectOf(agent) !== speaks) return false;
  if (state !== undefined && !matches(agent, state)) return false;
  if (q === undefined) return true;
  const text = `${agent.name}\n${agent.url}\n${agent.description ?? ""}`.toLowerCase();
  return text.includes(q.toLowerCase());
}

function matches(agent: Agent, state: string): boolean {
  if (state === "breaker") return agent.limits?.breaker != null && agent.limits.breaker.state !== "closed";
  return agent.activity != null && healthOf(agent.activity) === state;
}

/** The filters are kept in the URL. */
function Filters({ agents }: { agents: readonly Agent[] }) {
  const given = agentsRoute.useSearch();
  const navigate = useNavigate({ from: "/agents" });
  const [text, setText] = useState(given.q ?? "");
  const change = (part: AgentsSearch, without: keyof AgentsSearch) =>
    void navigate({ search: ({ [without]: _, ...rest }: AgentsSearch) => ({ ...rest, ...part }), replace: true });
  const look = useDebouncedCallback((q: string) => change(q === "" ? {} : { q }, "q"), TYPING_MS);
  const spoken = [...new Set(agents.map(dialectOf))].sort();
  return (
    <Group gap="xs">
      <TextInput
        type="search"
        aria-label="Search agents by name, URL or description"
        placeholder="Search by name or URL"
        leftSection={<Search size={16} aria-hidden />}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          look(event.currentTarget.value);
        }}
        maxLength={255}
        w={{ base: "100%", xs: 280 }}
        data-testid="search"
        data-search
      />
      <Select
        aria-label="Filter by dialect"
        placeholder="Any dialect"
        clearable
        clearButtonProps={{ "aria-label": "Any dialect" }}
        data={spoken}
        value={given.speaks ?? null}
        onChange={(speaks) => change(speaks === null ? {} : { speaks }, "speaks")}
        w={160}
        data-testid="filter-speaks"
      />
      <Select
        aria-label="Filter by status"
        placeholder="Any status"
        clearable
        clearButtonProps={{ "aria-label": "Any status" }}
        data={[
          ...HEALTH_STATES.map((standing: AgentHealth) => ({ value: standing, label: healthLabel(standing) })),
          { value: "breaker", label: "Breaker not closed" },
        ]}
        value={given.state ?? null}
        onChange={(state) => change(state === null ? {} : { state }, "state")}
        w={180}
        data-testid="filter-state"
      />
    </Group>
  );
}

function NoAgents() {
  return (
    <Stack gap="xs" data-testid="no-agents" maw={640}>
      <Text>No agents yet. Register one here or from a terminal:</Text>
      <Group gap="xs" wrap="nowrap">
        <Code block tabIndex={0} style={{ flex: 1 }}>
          {REGISTER}
        </Code>
        <CopyButton value={REGISTER}>
          {({ copied, copy }) => (
            <Button
              variant="default"
              leftSection={copied ? <Check size={16} aria-hidden /> : <Copy size={16} aria-hidden />}
              onClick={copy}
              data-testid="copy-register"
            >
              {copied ? "Copied" : "Copy"}
            </Button>
          )}
        </CopyButton>
      </Group>
    </Stack>
  );
}

function AgentTable({ agents, of }: { agents: readonly Agent[]; of: number }) {
  const [most, setMost] = useState(ROWS);
  return (
    <>
      <Table.ScrollContainer minWidth={0}>
        <Table highlightOnHover verticalSpacing={6} data-testid="agents">
          <Table.Caption>
            {agents.length === of ? `${of} agents` : `${agents.length} of ${of} agents`}. Figures cover the last hour.
          </Table.Caption>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Agent</Table.Th>
              <Table.Th visibleFrom="sm">Dialect</Table.Th>
              <Table.Th>Status</Table.Th>
              <Table.Th>Calls</Table.Th>
              <Table.Th visibleFrom="sm">Latency</Table.Th>
              <Table.Th visibleFrom="xs" className={classes["whole"]}>
                Last call
              </Table.Th>
              <Table.Th visibleFrom="md">Last check</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {agents.slice(0, most).map((agent) => (
              <AgentRow key={agent.id} agent={agent} />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {agents.length > most && (
        <Button variant="default" onClick={() => setMost(most + ROWS)}>
          Show {Math.min(ROWS, agents.length - most)} more
        </Button>
      )}
    </>
  );
}
