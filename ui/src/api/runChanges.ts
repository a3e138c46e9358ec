/**
 * Change notifications for the list of runs: one arrives when a run starts or changes, and does not say which run.
 *
 * Notifications are not stored for disconnected clients, so each connection starts with one. A hidden page disconnects.
 */

import { createParser } from "eventsource-parser";

import { abortWhenHidden, shown, wait } from "./visibility.ts";
import { doubtConnection } from "./connection.ts";
import { key } from "./key.ts";
import { inTurn } from "./sharedConnections.ts";
import { NoAnswer, Problem, problemOf } from "./problem.ts";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
// The server says something every 15 seconds; a line that is silent for longer is dead.
const SILENCE_MS = 40_000;

export interface ChangeListener {
  onChange(): void;
  /** False: nothing is heard for now. */
  onLive(live: boolean): void;
}

const listeners = new Set<ChangeListener>();
// What the page whose turn it is tells the others.
const pages = new BroadcastChannel("trunkline.bell");
let listening: AbortController | null = null;
let hearsItself = false;
let live = false;

pages.onmessage = ({ data }: MessageEvent<unknown>) => {
  if (data === "ring") ring();
  else if (data === "live" || data === "silent") tellLive(data === "live");
  else if (data === "who hears?" && hearsItself) pages.postMessage("live");
};

/** Listens until the signal aborts; all of a page, and all pages of the browser, over one line. */
export function subscribeToRunChanges(listener: ChangeListener, signal: AbortSignal): void {
  listeners.add(listener);
  if (live) {
    listener.onLive(true);
    listener.onChange();
  }
  if (listening === null) {
    const mine = (listening = new AbortController());
    void listen(mine.signal).finally(() => {
      // After a refusal the next one may try again, with another key.
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

function tellLive(now: boolean): void {
  live = now;
  for (const listener of listeners) listener.onLive(now);
}

function ring(): void {
  for (const listener of listeners) listener.onChange();
}

async function listen(signal: AbortSignal): Promise<void> {
  let refused = false;
  while (!signal.aborted && !refused) {
    await shown(signal);
    if (signal.aborted) return;
    // What rang while nobody looked.
    ring();
    pages.postMessage("who hears?");
    try {
      refused = await inTurn(signal, () => hearOn(signal));
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

/** Until the page is hidden or gone; true: the server wants nothing of this page. */
async function hearOn(signal: AbortSignal): Promise<boolean> {
  let pause = FIRST_PAUSE_MS;
  while (!signal.aborted && !document.hidden) {
    const begun = Date.now();
    try {
      await hear(signal);
    } catch (error) {
      const problem = error instanceof Problem ? error : new NoAnswer("read");
      // What asking again cannot change.
      if (problem.status >= 400 && problem.status < 500 && problem.status !== 429) return true;
      if (!signal.aborted && !document.hidden && problem.status === 0) void doubtConnection();
    } finally {
      hearsItself = false;
      tellLive(false);
      pages.postMessage("silent");
    }
    if (signal.aborted || document.hidden) break;
    if (Date.now() - begun > LONGEST_PAUSE_MS) pause = FIRST_PAUSE_MS;
    await wait(pause * (0.75 + Math.random() / 2), signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
  return false;
}

async function hear(signal: AbortSignal): Promise<void> {
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
    hearsItself = true;
    tellLive(true);
    pages.postMessage("live");
    const ringAll = () => {
      ring();
      pages.postMessage("ring");
    };
    ringAll();
    const parser = createParser({ onEvent: ringAll });
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
