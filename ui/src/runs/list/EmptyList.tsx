/** The empty list of runs: suggests the next step, or to change the filters. */

import { Button, Code, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { api, body } from "../../api/client.ts";
import { CopyTextButton } from "../../app/CopyTextButton.tsx";
import { ButtonLink } from "../../app/links.tsx";
import classes from "./list.module.css";
import type { RunsSearch } from "./search.ts";

// The default URL of the command line.
const DEFAULT_URL = "http://127.0.0.1:8000";

export function NoRuns() {
  const query = useQuery({
    queryKey: ["runs", "first"],
    queryFn: async () => {
      const one = { params: { query: { limit: 1 } } };
      const [workflows, agents] = await Promise.all([
        body(api.GET("/api/v1/workflows", one)),
        body(api.GET("/api/v1/agents", one)),
      ]);
      return { workflow: workflows.items[0]?.name, hasAgents: agents.items.length > 0 };
    },
  });
  if (query.data === undefined) return null;
  const { workflow, hasAgents } = query.data;
  const here = window.location.origin === DEFAULT_URL ? "" : ` --url ${window.location.origin}`;
  const [text, command] =
    workflow !== undefined
      ? ["No runs yet. Start one:", `trunkline run ${quoted(workflow)} --follow${here}`]
      : hasAgents
        ? ["No runs yet. Save a workflow first:", `trunkline workflows apply workflow.yaml${here}`]
        : [
            "No runs yet. Register an agent first:",
            `trunkline agents create my-agent http://localhost:8080/agent${here}`,
          ];
  return (
    <Stack gap="xs" maw={720} data-testid="no-runs">
      <Text>{text}</Text>
      <Group gap="xs" wrap="nowrap" align="flex-start">
        <Code block className={classes["command"]} data-testid="next-command">
          {command}
        </Code>
        <CopyTextButton text={command} label="Copy" testid="copy-command" size="sm" />
      </Group>
      {workflow !== undefined && (
        <Group gap="xs">
          <ButtonLink
            to="/workflows/$workflow/start"
            params={{ workflow }}
            search={{}}
            variant="default"
            size="xs"
            data-testid="start-here"
          >
            Start {workflow} here
          </ButtonLink>
        </Group>
      )}
    </Stack>
  );
}

/** Quotes a shell argument. */
function quoted(name: string): string {
  return /^[\w.@%+=:,/-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}

export function NoMatchingRuns({ search }: { search: RunsSearch }) {
  const navigate = useNavigate({ from: "/runs" });
  const { children: _, ...filters } = search;
  const hidesChildren = search.children !== true && search.parent === undefined;
  return (
    <Stack gap="xs" data-testid="nothing-found">
      <Text>No runs match these filters.{hidesChildren ? " Child runs are hidden." : ""}</Text>
      <Group gap="xs">
        <Button size="xs" variant="default" onClick={() => void navigate({ search: {} })} data-testid="show-all">
          Clear filters
        </Button>
        {hidesChildren && (
          <Button
            size="xs"
            variant="default"
            onClick={() => void navigate({ search: { ...filters, children: true } })}
            data-testid="show-children"
          >
            Show child runs
          </Button>
        )}
      </Group>
    </Stack>
  );
}
