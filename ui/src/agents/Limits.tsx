/** What an agent has to do now, and how its limits stand. */

import { Title } from "@mantine/core";

import { lasting, Timestamp, useNow } from "../app/Timestamp.tsx";
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
        Work and limits
      </Title>
      <dl className={classes["facts"]}>
        <dt>Under way</dt>
        <dd>
          {limits?.in_flight ?? 0} of {agent.max_concurrency} at a time
        </dd>
        <dt>Queued</dt>
        <dd>{limits?.queued ?? 0}</dd>
        <dt>Rate</dt>
        <dd>
          {agent.rate === null
            ? "No limit"
            : `${agent.rate.per_second} a second, ${agent.rate.burst} at once; ${rate?.tokens ?? 0} may begin now`}
        </dd>
        <dt>Breaker</dt>
        <dd>{breaker === null ? "None" : <BreakerBadge breaker={breaker.state} />}</dd>
        {breaker !== null && (
          <>
            <dt>Failures</dt>
            <dd>{breaker.failures} in a row</dd>
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
            <dt>Tried again</dt>
            <dd>
              <Until at={breaker.retry_at} />
            </dd>
          </>
        )}
        {agent.breaker !== null && (
          <>
            <dt>Opens after</dt>
            <dd>
              {agent.breaker.failures} failures in a row, or {Math.round(100 * agent.breaker.rate)} % of the last{" "}
              {agent.breaker.window} calls; for {lasting(agent.breaker.open_ms)}
            </dd>
          </>
        )}
        <dt>Timeout</dt>
        <dd>{lasting(agent.timeout_ms)} for each attempt</dd>
        <dt>Retries</dt>
        <dd>{agent.retry === null ? "As the step says" : retries(agent.retry)}</dd>
      </dl>
    </section>
  );
}

function retries({ max_attempts, backoff, first_delay, max_delay }: NonNullable<Agent["retry"]>): string {
  return `At most ${max_attempts} attempts, ${backoff} pauses from ${first_delay} up to ${max_delay}, unless the step says otherwise`;
}

function Until({ at }: { at: string }) {
  const left = Date.parse(at) - useNow();
  return <time dateTime={at}>{left <= 0 ? "with the next task" : `in ${lasting(left)}`}</time>;
}
