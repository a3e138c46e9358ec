/** The result of the last health check that this tab has made of an agent: it is newer than any call. */

import { queryOptions, type QueryClient, skipToken } from "@tanstack/react-query";

import { serverNow } from "../api/clock.ts";
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
