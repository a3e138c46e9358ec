/**
 * Streams the events of a run: server-sent events over `fetch`, because `EventSource` cannot send an API key.
 *
 * After a disconnect it reconnects with exponential backoff from the last event seen, so no event is missed or repeated.
 */

import { createParser } from "eventsource-parser";

import { abortWhenHidden, shown, wait } from "./visibility.ts";
import { recordResponseTime, recordEventTime } from "./serverClock.ts";
import { checkConnection } from "./connection.ts";
import { parseResponse } from "./exactJson.ts";
import { key } from "./apiKey.ts";
import { acquireConnection } from "./sharedConnections.ts";
import { NoResponseError, Problem, problemOf } from "./problem.ts";

export interface RunEvent {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export type Connection = "connecting" | "live" | "lost" | "over";

export interface Listener {
  /** In order, each event once, in batches of one read. */
  onEvents(events: readonly RunEvent[]): void;
  onConnection(connection: Connection, problem: Problem | null): void;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
// A page that is hidden for a moment keeps its connection.
const UNSEEN_MS = 10_000;
// The server sends a keep-alive every 15 seconds; a connection that is silent for longer is dead.
const SILENCE_MS = 40_000;
// A page without its own connection polls: the duration of a poll, and the pause between two.
const GLANCE_MS = 1_000;
const LOOK_AGAIN_MS = 2_000;
const FINAL = new Set(["RunCompleted", "RunFailed", "RunCancelled"]);

/** Follows a run until it is final or the signal aborts. */
export async function followRun(run: string, after: number, listener: Listener, signal: AbortSignal): Promise<void> {
  let seen = after;
  let over = false;
  let pause = FIRST_PAUSE_MS;
  const take = (events: readonly RunEvent[]) => {
    pause = FIRST_PAUSE_MS;
    const fresh = events.filter((event) => event.seq > seen);
    if (fresh.length === 0) return;
    seen = fresh[fresh.length - 1]!.seq;
    over ||= fresh.some((event) => FINAL.has(event.type));
    listener.onEvents(fresh);
  };
  listener.onConnection("connecting", null);
  while (!signal.aborted) {
    await shown(signal);
    const giveBack = await acquireConnection();
    const call = new Call(signal, giveBack === null ? GLANCE_MS : null);
    try {
      await listen(run, seen, call, take, () => listener.onConnection("live", null));
      if (!over) listener.onConnection("lost", null);
    } catch (error) {
      if (signal.aborted) return;
      // The final event has arrived, so the disconnect does not matter.
      if (over) break;
      if (call.wasHungUp) {
        // The page is hidden or only polls: the next connection returns the missed events.
        if (!document.hidden) await wait(LOOK_AGAIN_MS, signal);
        continue;
      }
      const problem = error instanceof Problem ? error : new NoResponseError("read");
      listener.onConnection("lost", problem);
      if (problem.status === 0) void checkConnection();
      // A retry cannot succeed.
      if (problem.status >= 400 && problem.status < 500 && problem.status !== 429) return;
    } finally {
      call.end();
      giveBack?.();
    }
    if (over) break;
    await wait(pause * (0.75 + Math.random() / 2), signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
  if (!signal.aborted) listener.onConnection("over", null);
}

/** A connection that is closed when the page is hidden, when its poll time is over, or when the server is silent. */
class Call {
  readonly line = new AbortController();
  wasHungUp = false;
  private readonly stop: () => void;
  private glance: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;

  constructor(
    signal: AbortSignal,
    private readonly glanceMs: number | null,
  ) {
    this.stop = abortWhenHidden(() => this.hangUp(), signal, UNSEEN_MS);
    this.hear();
  }

  private hangUp(): void {
    this.wasHungUp = true;
    this.line.abort();
  }

  /** The response headers have arrived. */
  open(): void {
    if (this.glanceMs !== null) this.glance = setTimeout(() => this.hangUp(), this.glanceMs);
  }

  /** Data has arrived. */
  hear(): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.line.abort(), SILENCE_MS);
  }

  end(): void {
    this.stop();
    clearTimeout(this.silence);
    clearTimeout(this.glance);
  }
}

async function listen(
  run: string,
  after: number,
  call: Call,
  onEvents: (events: readonly RunEvent[]) => void,
  onOpen: () => void,
): Promise<void> {
  const headers: Record<string, string> = { Accept: "text/event-stream", "Last-Event-ID": String(after) };
  const present = key.read();
  if (present !== null) headers["Authorization"] = `Bearer ${present}`;
  const asked = Date.now();
  const response = await fetch(`/api/v1/runs/${encodeURIComponent(run)}/events`, { headers, signal: call.line.signal });
  recordResponseTime(response.headers.get("Date"), asked);
  if (!response.ok || response.body === null) throw await problemOf(response);
  call.open();
  onOpen();
  await readEvents(response.body, call, onEvents);
}

async function readEvents(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  call: Call,
  onEvents: (events: readonly RunEvent[]) => void,
): Promise<void> {
  let batch: RunEvent[] = [];
  const parser = createParser({
    onEvent(message) {
      batch.push(parseResponse(message.data) as RunEvent);
    },
  });
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    call.hear();
    parser.feed(value);
    if (batch.length > 0) {
      recordEventTime(Date.parse(batch[batch.length - 1]!.at));
      onEvents(batch);
      batch = [];
    }
  }
}
