/**
 * A run's history as it is written: server-sent events over `fetch`, since `EventSource` can send no key.
 *
 * A cut is healed by asking again from the last event that was seen, ever more rarely, so nothing is missed and
 * nothing comes twice.
 */

import { createParser } from "eventsource-parser";

import { abortWhenHidden, shown, wait } from "./visibility.ts";
import { hearAnswer, hearEvent } from "./clock.ts";
import { doubtConnection } from "./connection.ts";
import { parseAnswer } from "./exactJson.ts";
import { key } from "./key.ts";
import { acquireConnection } from "./sharedConnections.ts";
import { NoAnswer, Problem, problemOf } from "./problem.ts";

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
// The server says something every 15 seconds; a line that is silent for longer is dead.
const SILENCE_MS = 40_000;
// For a page that gets no line of its own: how long it looks, and how long it waits then.
const GLANCE_MS = 1_000;
const LOOK_AGAIN_MS = 2_000;
const FINAL = new Set(["RunCompleted", "RunFailed", "RunCancelled"]);

/** Follows a run until it is final or the signal aborts. */
export async function follow(run: string, after: number, listener: Listener, signal: AbortSignal): Promise<void> {
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
      // A stream that breaks after its last word has said all.
      if (over) break;
      if (call.wasHungUp) {
        // Nobody looks, or another page has the line: what is missed meanwhile comes with the next look.
        if (!document.hidden) await wait(LOOK_AGAIN_MS, signal);
        continue;
      }
      const problem = error instanceof Problem ? error : new NoAnswer("read");
      listener.onConnection("lost", problem);
      if (problem.status === 0) void doubtConnection();
      // What asking again cannot change.
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

/** A line to the server that is hung up when nobody looks, or when its time is up; one that is silent is dead. */
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

  /** The server has answered. */
  open(): void {
    if (this.glanceMs !== null) this.glance = setTimeout(() => this.hangUp(), this.glanceMs);
  }

  /** Something has come. */
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
  hearAnswer(response.headers.get("Date"), asked);
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
      batch.push(parseAnswer(message.data) as RunEvent);
    },
  });
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    call.hear();
    parser.feed(value);
    if (batch.length > 0) {
      hearEvent(Date.parse(batch[batch.length - 1]!.at));
      onEvents(batch);
      batch = [];
    }
  }
}
