/** The result of the last health check that this browser tab made of an agent. */

import { queryOptions, type QueryClient, skipToken } from "@tanstack/react-query";

import { serverNow } from "../api/serverClock.ts";
import type { Health } from "./queries.ts";

export interface HealthCheck {
  readonly status: Health["status"];
  readonly detail: string;
  readonly at: string;
}

export const healthCheckQuery = (agent: string) =>
  queryOptions<HealthCheck>({
    queryKey: ["health-checks", agent],
    queryFn: skipToken,
    staleTime: Infinity,
    gcTime: Infinity,
  });

export function rememberHealthCheck(queries: QueryClient, agent: string, { status, detail }: Health): void {
  const check: HealthCheck = { status, detail, at: new Date(serverNow()).toISOString() };
  queries.setQueryDefaults(["health-checks"], { gcTime: Infinity });
  queries.setQueryData(healthCheckQuery(agent).queryKey, check);
}
