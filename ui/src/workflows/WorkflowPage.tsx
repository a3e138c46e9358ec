/** One workflow: its definition and graph, its versions with their differences, and its latest runs. */

import { Badge, Group, Select, Stack, Tabs, Text, Title } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { FilePen, Play } from "lucide-react";

import { usePermission } from "../app/permissions.ts";
import { AnchorLink, ButtonLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { escapeBidi } from "../app/bidi.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { workflowRoute } from "../app/router.tsx";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import { AgentNames } from "./AgentNames.tsx";
import { DefinitionPanes } from "./DefinitionPanes.tsx";
import { PublishPanel } from "./PublishPanel.tsx";
import { CurlPopover } from "./CurlPopover.tsx";
import { RecentRuns } from "./RecentRuns.tsx";
import { versionQuery, versionsQuery, type Workflow, workflowQuery } from "./queries.ts";
import { VersionsPanel } from "./VersionsPanel.tsx";
import classes from "./workflows.module.css";

export function WorkflowPage() {
  const { workflow } = workflowRoute.useParams();
  const { version: wanted } = workflowRoute.useSearch();
  const latest = useQuery(workflowQuery(workflow));
  const one = useQuery({ ...versionQuery(workflow, wanted ?? 0), enabled: wanted !== undefined });
  const shown = wanted === undefined ? latest : one;
  if (shown.error !== null) {
    return (
      <Stack gap="sm">
        <Title order={1} size="h3" className={classes["name"]}>
          {workflow}
        </Title>
        <ProblemPanel error={shown.error} again={() => void shown.refetch()} />
        <AnchorLink to="/workflows" search={{}} size="sm">
          All workflows
        </AnchorLink>
      </Stack>
    );
  }
  if (shown.data === undefined) return <Loading />;
  return <Shown workflow={shown.data} latest={latest.data?.version ?? shown.data.version} />;
}

function Shown({ workflow, latest }: { workflow: Workflow; latest: number }) {
  const { tab } = workflowRoute.useSearch();
  const navigate = useNavigate({ from: "/workflows/$workflow" });
  return (
    <Stack gap="sm">
      <Head workflow={workflow} latest={latest} />
      <Tabs
        value={tab ?? "definition"}
        onChange={(next) =>
          void navigate({
            search: ({ version }) => ({
              ...(version === undefined ? {} : { version }),
              ...(next === "versions" || next === "published" ? { tab: next } : {}),
            }),
          })
        }
        keepMounted={false}
      >
        <Tabs.List>
          <Tabs.Tab value="definition" data-testid="tab-definition">
            Definition
          </Tabs.Tab>
          <Tabs.Tab value="versions" data-testid="tab-versions">
            Versions
          </Tabs.Tab>
          <Tabs.Tab value="published" data-testid="tab-published">
            Publish
          </Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="definition" pt="sm">
          <Stack gap="md">
            <DefinitionPanes workflow={workflow} />
            <RecentRuns workflow={workflow.name} />
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="versions" pt="sm">
          <VersionsPanel workflow={workflow} />
        </Tabs.Panel>
        <Tabs.Panel value="published" pt="sm">
          <PublishPanel workflow={workflow} isLatest={workflow.version === latest} />
        </Tabs.Panel>
      </Tabs>
    </Stack>
  );
}

function Head({ workflow, latest }: { workflow: Workflow; latest: number }) {
  const mayEdit = usePermission("admin");
  const mayStart = usePermission("operator");
  return (
    <Stack gap={4}>
      <Group justify="space-between" align="flex-start" gap="sm">
        <Group gap="sm">
          <Title order={1} size="h3" className={classes["name"]} data-testid="workflow-name">
            {escapeBidi(workflow.name)}
          </Title>
          <VersionSelect workflow={workflow} latest={latest} />
        </Group>
        <Group gap="xs">
          <CurlPopover workflow={workflow} version={workflow.version === latest ? null : workflow.version} />
          {mayEdit.allowed ? (
            <ButtonLink
              to="/workflows/$workflow/edit"
              params={{ workflow: workflow.name }}
              search={workflow.version === latest ? {} : { version: workflow.version }}
              variant="default"
              leftSection={<FilePen size={16} aria-hidden />}
              data-testid="edit"
            >
              Edit
            </ButtonLink>
          ) : (
            <ActionButton icon={FilePen} refused={mayEdit.reason} size="sm" testId="edit">
              Edit
            </ActionButton>
          )}
          {mayStart.allowed ? (
            <ButtonLink
              to="/workflows/$workflow/start"
              params={{ workflow: workflow.name }}
              leftSection={<Play size={16} aria-hidden />}
              data-testid="start"
            >
              Start a run
            </ButtonLink>
          ) : (
            <ActionButton icon={Play} refused={mayStart.reason} size="sm" testId="start">
              Start a run
            </ActionButton>
          )}
        </Group>
      </Group>
      {workflow.description !== null && (
        <Text size="sm" className={classes["description"]}>
          {workflow.description}
        </Text>
      )}
      <Group gap="sm">
        <Text size="sm" c="dimmed">
          {workflow.steps} {workflow.steps === 1 ? "step" : "steps"}, saved <Timestamp at={workflow.created_at} />
        </Text>
        <AgentNames agents={workflow.agents} workflows={workflow.workflows} most={12} />
      </Group>
    </Stack>
  );
}

function VersionSelect({ workflow, latest }: { workflow: Workflow; latest: number }) {
  const navigate = useNavigate({ from: "/workflows/$workflow" });
  const query = useInfiniteQuery(versionsQuery(workflow.name));
  const listed = query.data?.pages.flatMap((page) => page.items.map(({ version }) => version)) ?? [];
  const versions = [...new Set([latest, ...listed, workflow.version])].sort((one, other) => other - one);
  return (
    <Group gap="xs">
      <Select
        aria-label="Version"
        size="xs"
        w={90}
        allowDeselect={false}
        data={versions.map((version) => ({ value: String(version), label: `v${version}` }))}
        value={String(workflow.version)}
        onChange={(version) =>
          void navigate({
            search: ({ version: _, ...rest }) =>
              Number(version) === latest ? rest : { ...rest, version: Number(version) },
          })
        }
        data-testid="version"
      />
      {workflow.version === latest ? (
        <Badge variant="light" color="gray" tt="none">
          latest
        </Badge>
      ) : (
        <Badge variant="light" color="orange" tt="none">
          v{latest} is the latest
        </Badge>
      )}
    </Group>
  );
}
