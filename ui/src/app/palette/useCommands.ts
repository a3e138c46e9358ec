/** The commands of the palette: pages, actions, and the runs, workflows and agents that match the query. */

import { useMantineColorScheme } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import { Activity, Bot, Clock, Keyboard, Moon, Network, Plus, Sun, SunMoon, type LucideIcon } from "lucide-react";

import { api, body } from "../../api/client.ts";
import { useTimeZone } from "../Timestamp.tsx";
import { NAVIGATION_ITEMS } from "../navigationItems.ts";
import { BEGINS, match } from "./match.ts";

export interface Command {
  readonly id: string;
  readonly name: string;
  readonly hint?: string;
  readonly keys?: string;
  readonly icon: LucideIcon;
  /** Whether it opens another page, which then takes the focus. */
  readonly leaves: boolean;
  readonly run: () => void;
}

export interface CommandGroup {
  readonly name: string;
  readonly commands: readonly Command[];
}

const AT_MOST = 6;
// A full page of names: they are matched here, because the server does not match letter by letter.
const ALL = 1_000;
const FOUND_BY_THE_SERVER = BEGINS / 2 + 1;
const RUN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The group with the best match first; groups without a match are left out. */
export function useCommands(
  typed: string,
  showShortcuts: () => void,
): { groups: CommandGroup[]; isSearching: boolean } {
  const router = useRouter();
  const go = (href: string) => () => router.history.push(href);
  const text = typed.trim();
  const [asked] = useDebouncedValue(text, 120);
  const actions = useActions(showShortcuts);
  const pages = NAVIGATION_ITEMS.map(({ to, name, icon, key }): Command => ({
    id: `page-${name.toLowerCase()}`,
    name,
    icon,
    keys: `g ${key}`,
    leaves: true,
    run: go(to),
  }));
  const runs = useRuns(asked);
  const workflows = useQuery({
    queryKey: ["palette", "workflows"],
    queryFn: () => body(api.GET("/api/v1/workflows", { params: { query: { limit: ALL } } })),
    staleTime: 30_000,
  });
  const agents = useQuery({
    queryKey: ["palette", "agents"],
    queryFn: () => body(api.GET("/api/v1/agents", { params: { query: { limit: ALL } } })),
    staleTime: 30_000,
  });
  const found = {
    // Ignore the results of the previous query.
    runs: (asked === text ? runs.found : []).map((run): Command => ({
      id: `run-${run.id}`,
      name: run.id,
      hint: run.hint,
      icon: Activity,
      leaves: true,
      run: go(`/runs/${encodeURIComponent(run.id)}`),
    })),
    workflows: (workflows.data?.items ?? []).map(({ name }): Command => ({
      id: `workflow-${name}`,
      name,
      icon: Network,
      leaves: true,
      run: go(`/workflows/${encodeURIComponent(name)}`),
    })),
    agents: (agents.data?.items ?? []).map(({ name, protocol }): Command => ({
      id: `agent-${name}`,
      name,
      hint: protocol,
      icon: Bot,
      leaves: true,
      run: go(`/agents/${encodeURIComponent(name)}`),
    })),
  };
  const create: Command[] = [
    { id: "new-workflow", name: "New workflow", icon: Plus, leaves: true, run: go("/new-workflow") },
    { id: "new-agent", name: "Register an agent", icon: Plus, leaves: true, run: go("/new-agent") },
  ];
  const groups: Answers[] = [
    best("Pages", text, pages),
    // The server also searches fields that are not shown: rank its results between prefix and inner matches.
    { name: "Runs", commands: found.runs.slice(0, AT_MOST), score: FOUND_BY_THE_SERVER },
    best("Workflows", text, found.workflows),
    best("Agents", text, found.agents),
    best("Actions", text, [...create, ...actions], 8),
  ];
  return {
    groups: (text === ""
      ? groups.filter(({ name }) => name === "Pages" || name === "Actions")
      : groups.sort((left, right) => right.score - left.score)
    ).filter(({ commands }) => commands.length > 0),
    isSearching: asked !== text || runs.isSearching || workflows.isLoading || agents.isLoading,
  };
}

function useRuns(typed: string): { found: { id: string; hint: string }[]; isSearching: boolean } {
  const query = useQuery({
    queryKey: ["palette", "runs", typed],
    queryFn: () => body(api.GET("/api/v1/runs", { params: { query: { limit: AT_MOST, q: typed } } })),
    enabled: typed !== "",
  });
  const items = typed === "" ? [] : (query.data?.items ?? []);
  const found = items.map((run) => ({ id: run.id, hint: `${run.workflow.name}, ${run.status.toLowerCase()}` }));
  if (RUN_ID.test(typed) && found.every(({ id }) => id !== typed.toLowerCase())) {
    found.unshift({ id: typed.toLowerCase(), hint: "open the run with this ID" });
  }
  return { found, isSearching: query.isFetching };
}

function useActions(showShortcuts: () => void): Command[] {
  const { setColorScheme } = useMantineColorScheme();
  const [zone, setZone] = useTimeZone();
  const other = zone === "utc" ? "local" : "utc";
  return [
    {
      id: "times",
      name: other === "utc" ? "Show times in UTC" : "Show local times",
      icon: Clock,
      leaves: false,
      run: () => setZone(other),
    },
    { id: "scheme-dark", name: "Dark theme", icon: Moon, leaves: false, run: () => setColorScheme("dark") },
    { id: "scheme-light", name: "Light theme", icon: Sun, leaves: false, run: () => setColorScheme("light") },
    {
      id: "scheme-auto",
      name: "System theme",
      icon: SunMoon,
      leaves: false,
      run: () => setColorScheme("auto"),
    },
    { id: "shortcuts", name: "Keyboard shortcuts", icon: Keyboard, keys: "?", leaves: true, run: showShortcuts },
  ];
}

/** A group and the score of its best match. */
interface Answers extends CommandGroup {
  readonly score: number;
}

function best(name: string, typed: string, commands: readonly Command[], atMost = AT_MOST): Answers {
  const answers = commands
    .map((command) => ({ command, score: match(typed, command.name) ?? -1 }))
    .filter(({ score }) => score >= 0)
    .sort((left, right) => right.score - left.score)
    .slice(0, atMost);
  return { name, commands: answers.map(({ command }) => command), score: answers[0]?.score ?? -1 };
}
