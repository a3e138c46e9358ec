/** Loads a page of a run's events, oldest first. */

import { api, body } from "../api/client.ts";
import type { components, operations } from "../api/schema.d.ts";
import type { RunEvent } from "../api/eventStream.ts";

type Query = Omit<NonNullable<operations["list_run_events"]["parameters"]["query"]>, "cursor">;

export interface EventPage {
  readonly events: readonly RunEvent[];
  /** Whether this was the last page when it was requested. */
  readonly isLast: boolean;
}

export async function eventPage(run: string, query: Query, signal: AbortSignal): Promise<EventPage> {
  const answer = await body(api.GET("/api/v1/runs/{run}/events", { params: { path: { run }, query }, signal }));
  // The response is never a stream, because none was requested.
  const { items, next_cursor } = answer as components["schemas"]["EventPage"];
  return { events: items as readonly RunEvent[], isLast: next_cursor === null };
}
