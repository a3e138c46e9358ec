/** An agent's current load and the state of its limits. */

import { Title } from "@mantine/core";

import { formatDuration, Timestamp, useNow } from "../app/Timestamp.tsx";
import classes from "./agents.module.css";
import { BreakerBadge } from "./Badges.tsx";
import type { Agent } from "./queries.ts";

export function Limits({ agent }: { agent: Agent }) {
  const limits = agent.limits ?? null;
  const breaker = limits?.breaker ?? null;
  const rate = limits?.rate ?? null;
  return (
    <section className={classes["box"]} aria-labelledby="limits-heading" data-testid="limits">
      <Title order={2} size="h5" mb="xs" id="limits-heading">
        Load and limits
      </Title>
      <dl className={classes["facts"]}>
        <dt>In flight</dt>
        <dd>
          {limits?.in_flight ?? 0} of {agent.max_concurrency}
        </dd>
        <dt>Queued</dt>
        <dd>{limits?.queued ?? 0}</dd>
        <dt>Rate limit</dt>
        <dd>
          {agent.rate === null
            ? "None"
            : `${agent.rate.per_second} calls per second, burst size ${agent.rate.burst}; ${rate?.tokens ?? 0} available now`}
        </dd>
        <dt>Circuit breaker</dt>
        <dd>{breaker === null ? "None" : <BreakerBadge breaker={breaker.state} />}</dd>
        {breaker !== null && (
          <>
            <dt>Failures</dt>
            <dd>{breaker.failures} consecutive</dd>
          </>
        )}
        {breaker?.reason != null && (
          <>
            <dt>Opened</dt>
            <dd>
              <Timestamp at={breaker.opened_at} />: {breaker.reason}
            </dd>
          </>
        )}
        {breaker?.retry_at != null && (
          <>
            <dt>Next probe</dt>
            <dd>
              <Until at={breaker.retry_at} />
            </dd>
          </>
        )}
        {agent.breaker !== null && (
          <>
            <dt>Opens after</dt>
            <dd>
              {agent.breaker.failures} consecutive failures, or if {Math.round(100 * agent.breaker.rate)}% of the last{" "}
              {agent.breaker.window} calls failed. Stays open for {formatDuration(agent.breaker.open_ms)}.
            </dd>
          </>
        )}
        <dt>Timeout</dt>
        <dd>{formatDuration(agent.timeout_ms)} per attempt</dd>
        <dt>Retries</dt>
        <dd>{agent.retry === null ? "Set by the step" : retries(agent.retry)}</dd>
      </dl>
    </section>
  );
}

function retries({ max_attempts, backoff, first_delay, max_delay }: NonNullable<Agent["retry"]>): string {
  return `Up to ${max_attempts} attempts, ${backoff} backoff from ${first_delay} to ${max_delay}, unless the step overrides it`;
}

function Until({ at }: { at: string }) {
  const left = Date.parse(at) - useNow();
  return <time dateTime={at}>{left <= 0 ? "With the next task" : `In ${formatDuration(left)}`}</time>;
}
