/** How an agent stands, read from what it had to do lately. */

import type { Activity, Agent, AgentCall } from "./queries.ts";

export const HEALTH_STATES = ["healthy", "unsteady", "failing", "quiet", "unused"] as const;
export type AgentHealth = (typeof HEALTH_STATES)[number];

export const BREAKERS = ["open", "half_open", "closed", "none"] as const;
export type BreakerWord = (typeof BREAKERS)[number];

export interface Totals {
  readonly calls: number;
  readonly failures: number;
  /** null: there was no call to measure. */
  readonly meanMs: number | null;
  readonly longestMs: number | null;
}

const FAILED = new Set<AgentCall["outcome"]>(["error", "unknown"]);

export function hasFailed(call: AgentCall): boolean {
  return FAILED.has(call.outcome);
}

export function totalsOf(activity: Activity): Totals {
  let calls = 0;
  let failures = 0;
  let milliseconds = 0;
  let longest = 0;
  for (const minute of activity.minutes) {
    calls += minute.calls;
    failures += minute.failures;
    milliseconds += minute.mean_ms * minute.calls;
    longest = Math.max(longest, minute.longest_ms);
  }
  return {
    calls,
    failures,
    meanMs: calls === 0 ? null : milliseconds / calls,
    longestMs: calls === 0 ? null : longest,
  };
}

export function healthOf(activity: Activity): AgentHealth {
  const { calls, failures } = totalsOf(activity);
  if (calls === 0) return activity.last_call === null ? "unused" : "quiet";
  if (failures === 0) return "healthy";
  // What has worked last may work again: nobody has to hurry.
  const isBack = activity.last_call !== null && !hasFailed(activity.last_call);
  return failures * 2 >= calls && !isBack ? "failing" : "unsteady";
}

export function breakerOf(agent: Agent): BreakerWord {
  return agent.limits?.breaker?.state ?? "none";
}

/** What is spoken in fact or, where nobody knows yet, what it is registered with. */
export function spokenBy(agent: Agent): string {
  return agent.dialect?.protocol ?? agent.protocol;
}

/** How what is spoken was found out, in a few words. */
export function foundBy({ protocol, dialect }: Agent): string {
  if (protocol !== "auto") return "pinned";
  if (dialect == null) return "not asked yet";
  return dialect.card_url === null ? "found by trying" : "from its card";
}

export interface Series {
  readonly calls: readonly number[];
  readonly failures: readonly number[];
  /** null: no call ended in that minute. */
  readonly meanMs: readonly (number | null)[];
  readonly longestMs: readonly (number | null)[];
}

const MINUTE_MS = 60_000;

/** Minute by minute, also those in which nothing happened. */
export function seriesOf(activity: Activity): Series {
  const begin = Date.parse(activity.from);
  const length = Math.max(1, Math.round((Date.parse(activity.to) - begin) / MINUTE_MS));
  const calls = Array<number>(length).fill(0);
  const failures = Array<number>(length).fill(0);
  const meanMs = Array<number | null>(length).fill(null);
  const longestMs = Array<number | null>(length).fill(null);
  for (const minute of activity.minutes) {
    const place = Math.round((Date.parse(minute.at) - begin) / MINUTE_MS);
    if (place < 0 || place >= length) continue;
    calls[place] = minute.calls;
    failures[place] = minute.failures;
    meanMs[place] = minute.mean_ms;
    longestMs[place] = minute.longest_ms;
  }
  return { calls, failures, meanMs, longestMs };
}
