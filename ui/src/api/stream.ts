/**
 * A run's history as it is written: server-sent events over `fetch`, since `EventSource` can send no key.
 *
 * A cut is healed by asking again from the last event that was seen, ever more rarely, so nothing is missed and
 * nothing comes twice.
 */

import { createParser } from "eventsource-parser";

import { hangUpUnseen, shown, wait } from "./attention.ts";
import { hearAnswer, hearEvent } from "./clock.ts";
import { doubtConnection } from "./connection.ts";
import { key } from "./key.ts";
import { Problem, problemOf, unreachable } from "./problem.ts";

export interface RunEvent {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export type Connection = "connecting" | "live" | "lost" | "over";

export interface Listener {
  /** In order, each once; as many as one read has brought. */
  onEvents(events: readonly RunEvent[]): void;
  onConnection(connection: Connection, problem: Problem | null): void;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
// Who goes to another tab for a moment finds everything as it is.
const UNSEEN_MS = 10_000;
const FINAL = new Set(["RunCompleted", "RunFailed", "RunCancelled"]);

/** Follows a run until it is final or the signal aborts. */
export async function follow(run: string, after: number, listener: Listener, signal: AbortSignal): Promise<void> {
  let seen = after;
  let over = false;
  let pause = FIRST_PAUSE_MS;
  listener.onConnection("connecting", null);
  while (!signal.aborted) {
    await shown(signal);
    try {
      await listen(run, seen, signal, (events) => {
        pause = FIRST_PAUSE_MS;
        const fresh = events.filter((event) => event.seq > seen);
        if (fresh.length === 0) return;
        seen = fresh[fresh.length - 1]!.seq;
        over ||= fresh.some((event) => FINAL.has(event.type));
        listener.onEvents(fresh);
      }, () => listener.onConnection("live", null));
      if (!over) listener.onConnection("lost", null);
    } catch (error) {
      if (signal.aborted) return;
      // Hung up since nobody looks; what is missed meanwhile comes when somebody does.
      if (document.hidden && !(error instanceof Problem)) continue;
      // A stream that breaks after its last word has said all.
      if (over) break;
      const problem = error instanceof Problem ? error : unreachable(error);
      listener.onConnection("lost", problem);
      if (problem.status === 0) doubtConnection();
      // What asking again cannot change.
      if (problem.status >= 400 && problem.status < 500 && problem.status !== 429) return;
    }
    if (over) break;
    await wait(pause * (0.75 + Math.random() / 2), signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
  if (!signal.aborted) listener.onConnection("over", null);
}

async function listen(
  run: string,
  after: number,
  signal: AbortSignal,
  onEvents: (events: readonly RunEvent[]) => void,
  onOpen: () => void,
): Promise<void> {
  const headers: Record<string, string> = { Accept: "text/event-stream", "Last-Event-ID": String(after) };
  const present = key.read();
  if (present !== null) headers["Authorization"] = `Bearer ${present}`;
  const call = new AbortController();
  const stop = hangUpUnseen(() => call.abort(), signal, UNSEEN_MS);
  const asked = Date.now();
  try {
    const response = await fetch(`/api/v1/runs/${encodeURIComponent(run)}/events`, { headers, signal: call.signal });
    hearAnswer(response.headers.get("Date"), asked);
    if (!response.ok || response.body === null) throw await problemOf(response);
    onOpen();
    await readEvents(response.body, onEvents);
  } finally {
    stop();
  }
}

async function readEvents(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  onEvents: (events: readonly RunEvent[]) => void,
): Promise<void> {
  let batch: RunEvent[] = [];
  const parser = createParser({
    onEvent(message) {
      batch.push(JSON.parse(message.data) as RunEvent);
    },
  });
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    parser.feed(value);
    if (batch.length > 0) {
      hearEvent(Date.parse(batch[batch.length - 1]!.at));
      onEvents(batch);
      batch = [];
    }
  }
}
