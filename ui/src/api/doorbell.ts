/**
 * The doorbell of the list of runs: it rings when some run was begun or has moved, and never says which.
 *
 * Rings are not kept for who is away, so each connection begins with one. Nobody looks at a hidden page: it hangs up,
 * since a browser has few connections for all pages of one server.
 */

import { createParser } from "eventsource-parser";

import { doubtConnection } from "./connection.ts";
import { key } from "./key.ts";
import { Problem, problemOf, unreachable } from "./problem.ts";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
// The server says something every 15 seconds; a line that is silent for longer is dead.
const SILENCE_MS = 40_000;

export interface Ear {
  onRing(): void;
  /** False: nothing is heard for now. */
  onLive(live: boolean): void;
}

/** Listens until the signal aborts. */
export async function listenForRuns(ear: Ear, signal: AbortSignal): Promise<void> {
  let pause = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    await shown(signal);
    const begun = Date.now();
    try {
      await hear(ear, signal);
    } catch (error) {
      const problem = error instanceof Problem ? error : unreachable(error);
      // What asking again cannot change.
      if (problem.status >= 400 && problem.status < 500 && problem.status !== 429) {
        ear.onLive(false);
        return;
      }
      if (!signal.aborted && document.visibilityState === "visible" && problem.status === 0) doubtConnection();
    }
    ear.onLive(false);
    if (signal.aborted || document.visibilityState === "hidden") continue;
    if (Date.now() - begun > LONGEST_PAUSE_MS) pause = FIRST_PAUSE_MS;
    await wait(pause * (0.75 + Math.random() / 2), signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

async function hear(ear: Ear, signal: AbortSignal): Promise<void> {
  const line = new AbortController();
  const hangUp = () => line.abort();
  const hangUpIfHidden = () => {
    if (document.visibilityState === "hidden") hangUp();
  };
  let silence = setTimeout(hangUp, SILENCE_MS);
  signal.addEventListener("abort", hangUp, { once: true });
  document.addEventListener("visibilitychange", hangUpIfHidden);
  try {
    const present = key.read();
    const headers = { Accept: "text/event-stream", ...(present === null ? {} : { Authorization: `Bearer ${present}` }) };
    const response = await fetch("/api/v1/runs/changes", { headers, signal: line.signal });
    if (!response.ok || response.body === null) throw await problemOf(response);
    ear.onLive(true);
    ear.onRing();
    const parser = createParser({ onEvent: () => ear.onRing() });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(hangUp, SILENCE_MS);
      parser.feed(value);
    }
  } finally {
    clearTimeout(silence);
    signal.removeEventListener("abort", hangUp);
    document.removeEventListener("visibilitychange", hangUpIfHidden);
  }
}

function shown(signal: AbortSignal): Promise<void> {
  if (document.visibilityState === "visible" || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      if (document.visibilityState === "hidden" && !signal.aborted) return;
      document.removeEventListener("visibilitychange", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    document.addEventListener("visibilitychange", done);
    signal.addEventListener("abort", done);
  });
}

function wait(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
