/**
 * Change notifications for the list of runs: one arrives when a run starts or changes, and does not say which run.
 *
 * Notifications are not stored for disconnected clients, so each connection starts with one. A hidden page disconnects.
 */

import { createParser } from "eventsource-parser";

import { abortWhenHidden, shown, wait } from "./visibility.ts";
import { checkConnection } from "./connection.ts";
import { key } from "./apiKey.ts";
import { asLeader } from "./sharedConnections.ts";
import { NoResponseError, Problem, problemOf } from "./problem.ts";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
// The server sends a keep-alive every 15 seconds; a connection that is silent for longer is dead.
const SILENCE_MS = 40_000;

export interface ChangeListener {
  onChange(): void;
  /** False while notifications are not received. */
  onLive(live: boolean): void;
}

const listeners = new Set<ChangeListener>();
// The tab that holds the connection forwards its notifications to the others.
const pages = new BroadcastChannel("trunkline.run-changes");
let listening: AbortController | null = null;
let isLeader = false;
let live = false;

pages.onmessage = ({ data }: MessageEvent<unknown>) => {
  if (data === "changed") notifyListeners();
  else if (data === "live" || data === "silent") setLive(data === "live");
  else if (data === "is anyone live?" && isLeader) pages.postMessage("live");
};

/** Listens until the signal aborts. All listeners in all tabs share one connection. */
export function subscribeToRunChanges(listener: ChangeListener, signal: AbortSignal): void {
  listeners.add(listener);
  if (live) {
    listener.onLive(true);
    listener.onChange();
  }
  if (listening === null) {
    const mine = (listening = new AbortController());
    void listen(mine.signal).finally(() => {
      // After a rejection, the next subscriber may succeed with another key.
      if (listening === mine) listening = null;
    });
  }
  signal.addEventListener(
    "abort",
    () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      listening?.abort();
      listening = null;
    },
    { once: true },
  );
}

function setLive(now: boolean): void {
  live = now;
  for (const listener of listeners) listener.onLive(now);
}

function notifyListeners(): void {
  for (const listener of listeners) listener.onChange();
}

async function listen(signal: AbortSignal): Promise<void> {
  let refused = false;
  while (!signal.aborted && !refused) {
    await shown(signal);
    if (signal.aborted) return;
    // There may have been changes while the page was hidden.
    notifyListeners();
    pages.postMessage("is anyone live?");
    try {
      refused = await asLeader(signal, () => receiveUntilHidden(signal));
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

/** Listens until the page is hidden or closed. Returns true if the server rejected the request. */
async function receiveUntilHidden(signal: AbortSignal): Promise<boolean> {
  let pause = FIRST_PAUSE_MS;
  while (!signal.aborted && !document.hidden) {
    const begun = Date.now();
    try {
      await receive(signal);
    } catch (error) {
      const problem = error instanceof Problem ? error : new NoResponseError("read");
      // A retry cannot succeed.
      if (problem.status >= 400 && problem.status < 500 && problem.status !== 429) return true;
      if (!signal.aborted && !document.hidden && problem.status === 0) void checkConnection();
    } finally {
      isLeader = false;
      setLive(false);
      pages.postMessage("silent");
    }
    if (signal.aborted || document.hidden) break;
    if (Date.now() - begun > LONGEST_PAUSE_MS) pause = FIRST_PAUSE_MS;
    await wait(pause * (0.75 + Math.random() / 2), signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
  return false;
}

async function receive(signal: AbortSignal): Promise<void> {
  const call = new AbortController();
  const hangUp = () => call.abort();
  let silence = setTimeout(hangUp, SILENCE_MS);
  const stop = abortWhenHidden(hangUp, signal, 0);
  try {
    const present = key.read();
    const headers = {
      Accept: "text/event-stream",
      ...(present === null ? {} : { Authorization: `Bearer ${present}` }),
    };
    const response = await fetch("/api/v1/runs/changes", { headers, signal: call.signal });
    if (!response.ok || response.body === null) throw await problemOf(response);
    isLeader = true;
    setLive(true);
    pages.postMessage("live");
    const notifyAll = () => {
      notifyListeners();
      pages.postMessage("changed");
    };
    notifyAll();
    const parser = createParser({ onEvent: notifyAll });
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
    stop();
  }
}
