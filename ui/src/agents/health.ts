/** Derives an agent's health from its recent activity. */

import type { Activity, Agent, AgentCall } from "./queries.ts";

export const HEALTH_STATES = ["healthy", "unsteady", "failing", "quiet", "unused"] as const;
export type AgentHealth = (typeof HEALTH_STATES)[number];

export const BREAKERS = ["open", "half_open", "closed", "none"] as const;
export type BreakerState = (typeof BREAKERS)[number];

export interface Totals {
  readonly calls: number;
  readonly failures: number;
  /** null if there were no calls. */
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
  // If the latest call succeeded, the agent may have recovered.
  const isBack = activity.last_call !== null && !hasFailed(activity.last_call);
  return failures * 2 >= calls && !isBack ? "failing" : "unsteady";
}

export function breakerOf(agent: Agent): BreakerState {
  return agent.limits?.breaker?.state ?? "none";
}

/** The detected dialect or, before detection, the registered protocol. */
export function dialectOf(agent: Agent): string {
  return agent.dialect?.protocol ?? agent.protocol;
}

/** How the dialect was determined. */
export function detectionLabel({ protocol, dialect }: Agent): string {
  if (protocol !== "auto") return "configured";
  if (dialect == null) return "not detected yet";
  return dialect.card_url === null ? "detected by probes" : "from agent card";
}

export interface Series {
  readonly calls: readonly number[];
  readonly failures: readonly number[];
  /** null if no call ended in that minute. */
  readonly meanMs: readonly (number | null)[];
  readonly longestMs: readonly (number | null)[];
}

const MINUTE_MS = 60_000;

/** One value per minute, including minutes without calls. */
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
