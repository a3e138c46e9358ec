/** A page of a run's history, oldest first. */

import { api, body } from "../api/client.ts";
import type { components, operations } from "../api/schema.d.ts";
import type { RunEvent } from "../api/stream.ts";

type Query = Omit<NonNullable<operations["list_run_events"]["parameters"]["query"]>, "cursor">;

export interface EventPage {
  readonly events: readonly RunEvent[];
  /** Nothing that was there when it was asked for comes after it. */
  readonly isLast: boolean;
}

export async function eventPage(run: string, query: Query, signal: AbortSignal): Promise<EventPage> {
  const answer = await body(api.GET("/api/v1/runs/{run}/events", { params: { path: { run }, query }, signal }));
  // The other form, the stream, was not asked for.
  const { items, next_cursor } = answer as components["schemas"]["EventPage"];
  return { events: items as readonly RunEvent[], isLast: next_cursor === null };
}
