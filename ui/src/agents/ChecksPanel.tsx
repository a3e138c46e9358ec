/** Checks of an agent: the latest checks, the report of one, and a button that starts a new one. */

import { Group, Stack, Switch, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { ClipboardCheck } from "lucide-react";
import { useState } from "react";

import { api, body } from "../api/client.ts";
import { usePermission } from "../app/permissions.ts";
import { Loading } from "../app/Loading.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { agentRoute } from "../app/router.tsx";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import classes from "./agents.module.css";
import { CheckReportView } from "./CheckReportView.tsx";
import { GradeBadge } from "./Badges.tsx";
import { Callout } from "./Callout.tsx";
import { type Agent, checkQuery, type CheckSummary, checksQuery } from "./queries.ts";

export function ChecksPanel({ agent }: { agent: Agent }) {
  const { check } = agentRoute.useSearch();
  const query = useQuery(checksQuery(agent.name));
  const checks = query.data?.items ?? [];
  const shown = check ?? checks[0]?.id;
  return (
    <Stack gap="md">
      <CheckNow agent={agent} />
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.isSuccess && checks.length === 0 && (
        <Text size="sm" data-testid="no-checks">
          No checks yet. A check tests whether the agent conforms to its protocol, and explains how to fix what does
          not.
        </Text>
      )}
      {checks.length > 0 && (
        <div className={classes["checks"]}>
          <nav aria-label="Checks">
            {checks.map((each) => (
              <CheckLink key={each.id} check={each} isShown={each.id === shown} />
            ))}
          </nav>
          {shown !== undefined && <OneCheck agent={agent.name} check={shown} />}
        </div>
      )}
    </Stack>
  );
}

function CheckNow({ agent }: { agent: Agent }) {
  const [active, setActive] = useState(false);
  const may = usePermission("operator");
  const queries = useQueryClient();
  const navigate = useNavigate({ from: "/agents/$agent" });
  const check = useMutation({
    mutationFn: () =>
      body(
        api.POST("/api/v1/agents/{agent}/check", {
          params: { path: { agent: agent.name } },
          body: { active } as never,
        }),
      ),
    onSuccess: (report) => {
      queries.setQueryData(checkQuery(agent.name, report.id).queryKey, report);
      void queries.invalidateQueries({ queryKey: ["agents"] });
      void navigate({ search: { tab: "checks", check: report.id } });
    },
  });
  return (
    <Stack gap="xs">
      <Group gap="md">
        <ActionButton
          icon={ClipboardCheck}
          refused={may.allowed ? null : may.reason}
          loading={check.isPending}
          filled
          size="sm"
          onPress={() => check.mutate()}
          testId="check-now"
        >
          Check now
        </ActionButton>
        <Switch
          label="Send test messages"
          checked={active}
          onChange={(event) => setActive(event.currentTarget.checked)}
          data-testid="check-active"
        />
      </Group>
      {active && (
        <Callout weight="caution" title="The agent processes test messages as real work">
          <Text size="sm">
            Without test messages, only the agent card and the handling of invalid requests are checked.
          </Text>
        </Callout>
      )}
      {check.isPending && (
        <Text size="sm" role="status">
          Checking. This takes a few seconds, at most two minutes.
        </Text>
      )}
      {check.error !== null && <ProblemPanel error={check.error} />}
    </Stack>
  );
}

function CheckLink({ check, isShown }: { check: CheckSummary; isShown: boolean }) {
  return (
    <Link
      from="/agents/$agent"
      to="."
      search={{ tab: "checks", check: check.id }}
      className={classes["check"]}
      aria-current={isShown ? "true" : undefined}
      data-testid="check"
    >
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <GradeBadge grade={check.grade} passed={check.passed} />
        <span className={classes["small"]}>
          <Timestamp at={check.at} />
        </span>
      </Group>
      <Text size="xs" c="dimmed">
        {check.protocol}
        {check.active ? ", with test messages" : ""}
        {check.failed.length > 0 && `, ${check.failed.length} failed`}
        {check.warnings.length > 0 &&
          `, ${check.warnings.length} ${check.warnings.length === 1 ? "warning" : "warnings"}`}
      </Text>
    </Link>
  );
}

function OneCheck({ agent, check }: { agent: string; check: string }) {
  const query = useQuery(checkQuery(agent, check));
  if (query.data === undefined) {
    return query.error === null ? <Loading /> : <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  }
  return (
    <Stack gap="sm" component="section" aria-labelledby="report-heading">
      <Title order={2} size="h5" id="report-heading">
        Report
      </Title>
      <CheckReportView report={query.data} />
    </Stack>
  );
}
