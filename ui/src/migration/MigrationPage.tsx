/** The migrations of all agents as a board with a column per stage and a card per agent. */

import { Alert, Code, Group, Stack, Text, TextInput, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Search } from "lucide-react";
import { useRef, type CSSProperties } from "react";

import { AnchorLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { migrationRoute } from "../app/router.tsx";
import { useShortcut } from "../app/shortcuts.ts";
import { BoardCard } from "./BoardCard.tsx";
import { FleetActions } from "./FleetActions.tsx";
import classes from "./migration.module.css";
import { planQuery, type Entry, type Stage } from "./queries.ts";
import { LOOKS, stageOf, STAGES } from "./stages.ts";
import { pluralized } from "./labels.ts";

export function MigrationPage() {
  const { q = "" } = migrationRoute.useSearch();
  const navigate = useNavigate({ from: "/migration" });
  const field = useRef<HTMLInputElement>(null);
  useShortcut("/", "Find an agent", () => field.current?.focus());
  const query = useQuery(planQuery);
  const entries = query.data ?? [];
  const shown = entries.filter(({ agent }) => agent.toLowerCase().includes(q.toLowerCase()));
  const settled = shown.filter((entry) => stageOf(entry) === null);
  return (
    <Stack gap="sm">
      <Group justify="space-between" gap="sm">
        <Title order={1} size="h3">
          Migration
        </Title>
        <Group gap="xs">
          <TextInput
            ref={field}
            size="xs"
            aria-label="Find an agent"
            placeholder="Find an agent"
            leftSection={<Search size={14} aria-hidden />}
            value={q}
            onChange={(event) => {
              const wanted = event.currentTarget.value;
              void navigate({ search: wanted === "" ? {} : { q: wanted }, replace: true });
            }}
            data-testid="find-agent"
          />
          <FleetActions entries={entries} />
        </Group>
      </Group>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading lines={8} />}
      {query.isSuccess && (entries.length === 0 ? <NoAgents /> : <Board entries={shown} />)}
      {settled.length > 0 && <Settled entries={settled} />}
    </Stack>
  );
}

function Board({ entries }: { entries: readonly Entry[] }) {
  const columns = STAGES.map((stage) => ({
    stage,
    entries: entries.filter((entry) => stageOf(entry) === stage).sort(byUse),
  }));
  // An empty stage is as narrow as its name.
  const widths = columns
    .map((column) => (column.entries.length === 0 ? "max-content" : "minmax(10.5rem, 1fr)"))
    .join(" ");
  return (
    <div
      className={classes["board"]}
      style={{ "--columns": widths } as CSSProperties}
      data-testid="board"
      role="group"
      aria-label="Agents by stage"
      tabIndex={0}
    >
      {columns.map((column) => (
        <Column key={column.stage} {...column} />
      ))}
    </div>
  );
}

function Column({ stage, entries }: { stage: Stage; entries: readonly Entry[] }) {
  const { name, icon: Icon, color, told } = LOOKS[stage];
  return (
    <section
      className={classes["column"]}
      aria-label={name}
      data-testid={`column-${stage}`}
      data-empty={entries.length === 0}
    >
      <h2 className={classes["columnHead"]} title={told}>
        <Icon size={15} aria-hidden color={color} />
        {name}
        <span className={classes["count"]}>{entries.length}</span>
      </h2>
      {entries.length > 0 && (
        <ul className={classes["cards"]}>
          {entries.map((entry) => (
            <BoardCard key={entry.agent} entry={entry} />
          ))}
        </ul>
      )}
    </section>
  );
}

function NoAgents() {
  return (
    <Stack gap="xs" data-testid="no-agents">
      <Text>No agents yet. Register one to migrate it to another protocol:</Text>
      <Code block>trunkline agents create NAME URL --protocol simple-a2a --repeatable</Code>
    </Stack>
  );
}

/** Agents with a newer protocol and no migration. */
function Settled({ entries }: { entries: readonly Entry[] }) {
  return (
    <Alert variant="default" title={`${pluralized(entries.length, "agent")} without a migration`} data-testid="settled">
      <Group gap="xs">
        {entries.map((entry) => (
          <AnchorLink key={entry.agent} to="/migration/$agent" params={{ agent: entry.agent }} size="sm">
            {entry.agent}{" "}
            <Text span size="xs" c="dimmed">
              {entry.in_use}
            </Text>
          </AnchorLink>
        ))}
      </Group>
    </Alert>
  );
}

/** The agents that most workflows use come first. */
function byUse(left: Entry, right: Entry): number {
  return right.workflows.length - left.workflows.length || left.agent.localeCompare(right.agent);
}
