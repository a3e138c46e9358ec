/** One agent of the list. */

import { Stack, Table, Text } from "@mantine/core";

import { AnchorLink } from "../app/links.tsx";
import { formatDuration, Timestamp } from "../app/Timestamp.tsx";
import classes from "./agents.module.css";
import { HealthCheckMark } from "./HealthCheckMark.tsx";
import { BreakerBadge, GradeBadge, OutcomeBadge, HealthBadge } from "./Badges.tsx";
import type { Activity, Agent } from "./queries.ts";
import { CallBars, LatencyLine } from "./Sparkline.tsx";
import { breakerOf, detectionLabel, seriesOf, dialectOf, healthOf, totalsOf } from "./health.ts";

export function AgentRow({ agent }: { agent: Agent }) {
  const activity = agent.activity ?? null;
  return (
    <Table.Tr data-testid="agent" data-agent={agent.name}>
      <Table.Td className={classes["who"]}>
        <AnchorLink to="/agents/$agent" params={{ agent: agent.name }} fw={600} size="sm" className={classes["name"]}>
          {agent.name}
        </AnchorLink>
        <Text size="xs" c="dimmed" lineClamp={1} title={agent.url} className={classes["wrap"]}>
          {agent.url}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Text size="sm" className={classes["whole"]}>
          {dialectOf(agent)}
        </Text>
        <span className={classes["small"]}>{detectionLabel(agent)}</span>
      </Table.Td>
      <Table.Td>
        <Stack gap={0} align="flex-start">
          {activity !== null && <HealthBadge standing={healthOf(activity)} />}
          <HealthCheckMark agent={agent.name} />
          <BreakerBadge breaker={breakerOf(agent)} />
        </Stack>
      </Table.Td>
      {activity !== null && <Figures activity={activity} />}
      <Table.Td visibleFrom="xs">
        {activity?.last_call == null ? (
          <Text size="sm" c="dimmed">
            –
          </Text>
        ) : (
          <Stack gap={0} align="flex-start">
            <Text size="sm" className={classes["whole"]}>
              <Timestamp at={activity.last_call.ended_at} />
            </Text>
            <OutcomeBadge outcome={activity.last_call.outcome} />
          </Stack>
        )}
      </Table.Td>
      <Table.Td visibleFrom="md">
        {agent.last_check == null ? (
          <Text size="sm" c="dimmed">
            Never
          </Text>
        ) : (
          <Stack gap={0} align="flex-start">
            <GradeBadge grade={agent.last_check.grade} passed={agent.last_check.passed} />
            <span className={classes["small"]}>
              <Timestamp at={agent.last_check.at} />
            </span>
          </Stack>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function Figures({ activity }: { activity: Activity }) {
  const { calls, failures, meanMs, longestMs } = totalsOf(activity);
  const series = seriesOf(activity);
  const failed = failures === 0 ? "" : `, ${failures.toLocaleString()} failed`;
  const latency =
    meanMs === null ? "no calls" : `${formatDuration(meanMs)} on average, ${formatDuration(longestMs ?? 0)} maximum`;
  return (
    <>
      <Table.Td>
        <div className={classes["figure"]} data-testid="calls">
          <CallBars
            series={series}
            label={`Calls per minute in the last hour: ${calls} in total, ${failures} failed.`}
          />
          <span className={classes["small"]}>
            {calls.toLocaleString()}
            {failures > 0 && (
              <span className={classes["bad"]}>
                {failed}
                <span className={classes["share"]}> ({Math.round((100 * failures) / calls)}%)</span>
              </span>
            )}
          </span>
        </div>
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <div className={classes["figure"]} data-testid="latency">
          <LatencyLine series={series} label={`Latency per minute in the last hour: ${latency}.`} />
          <span className={classes["small"]}>
            {meanMs === null ? "–" : formatDuration(meanMs)}
            {longestMs !== null && <span className={classes["share"]}>, max {formatDuration(longestMs)}</span>}
          </span>
        </div>
      </Table.Td>
    </>
  );
}
