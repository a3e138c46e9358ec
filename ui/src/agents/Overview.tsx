/** The overview of an agent: activity, dialect, registration and limits. */

import { Group, SegmentedControl, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { formatDuration } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { agentRoute } from "../app/router.tsx";
import { CallsChart, LatencyChart } from "./ActivityChart.tsx";
import classes from "./agents.module.css";
import { Evidence } from "./Evidence.tsx";
import { Limits } from "./Limits.tsx";
import { type Agent, activityQuery, HOUR } from "./queries.ts";
import { Registration } from "./Registration.tsx";
import { totalsOf } from "./health.ts";

const SPANS = [
  { value: "60", label: "1 h" },
  { value: "360", label: "6 h" },
  { value: "1440", label: "24 h" },
];

export function Overview({ agent }: { agent: Agent }) {
  return (
    <Stack gap="md">
      <ActivitySection agent={agent.name} />
      <div className={classes["columns"]}>
        <div className={classes["stack"]}>
          <Evidence agent={agent} />
          <Registration agent={agent} />
        </div>
        <Limits agent={agent} />
      </div>
    </Stack>
  );
}

function ActivitySection({ agent }: { agent: string }) {
  const { minutes = HOUR } = agentRoute.useSearch();
  const navigate = useNavigate({ from: "/agents/$agent" });
  const shown = SPANS.some(({ value }) => value === String(minutes)) ? minutes : HOUR;
  const query = useQuery(activityQuery(agent, shown));
  return (
    <section className={classes["box"]} aria-labelledby="activity-heading">
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h5" id="activity-heading">
          Activity
        </Title>
        <SegmentedControl
          size="xs"
          aria-label="Time range"
          data={SPANS}
          value={String(shown)}
          onChange={(next) => void navigate({ search: next === "60" ? {} : { minutes: Number(next) }, replace: true })}
          data-testid="span"
        />
      </Group>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.data !== undefined && <Charts activity={query.data} />}
    </section>
  );
}

function Charts({ activity }: { activity: Parameters<typeof totalsOf>[0] }) {
  const { calls, failures, meanMs, longestMs } = totalsOf(activity);
  return (
    <div className={classes["columns"]}>
      <div>
        <Text size="sm" mb={4} data-testid="calls-total">
          <b>{calls.toLocaleString()}</b> {calls === 1 ? "call" : "calls"},{" "}
          <span className={failures > 0 ? classes["bad"] : undefined}>{failures.toLocaleString()} failed</span>
        </Text>
        <CallsChart activity={activity} />
      </div>
      <div>
        <Text size="sm" mb={4} data-testid="latency-total">
          {meanMs === null ? (
            "No latency data yet"
          ) : (
            <>
              <b>{formatDuration(meanMs)}</b> average (line), {formatDuration(longestMs ?? 0)} maximum (bars)
            </>
          )}
        </Text>
        <LatencyChart activity={activity} />
      </div>
    </div>
  );
}
