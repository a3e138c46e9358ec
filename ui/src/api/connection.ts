/**
 * Whether the server is reachable.
 *
 * After a failed call, this module probes `/livez`: one failed call does not mean that the connection is lost. While the
 * probe fails, it is repeated with exponential backoff and queries are paused. They resume with the first success.
 */

import { onlineManager } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";

export interface Connection {
  readonly answers: boolean;
  /** When the connection was lost. */
  readonly lostAt: number | null;
  /** The time of the next probe; null while one is running. */
  readonly nextAt: number | null;
}

const ANSWERS: Connection = { answers: true, lostAt: null, nextAt: null };
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;
// A server that accepts the connection but does not respond counts as unreachable.
const PATIENCE_MS = 5_000;

const listeners = new Set<() => void>();
let present = ANSWERS;
let asked: Promise<void> | null = null;
let pause = FIRST_PAUSE_MS;
let timer: ReturnType<typeof setTimeout> | null = null;

// The browser's own online state is ignored: Trunkline may run on this machine, which needs no network.
onlineManager.setEventListener((setOnline) => {
  const tell = () => setOnline(present.answers);
  listeners.add(tell);
  return () => listeners.delete(tell);
});

/** Probes the server after a failed call; resolves with the end of the probe. */
export async function checkConnection(): Promise<void> {
  if (present.answers) await ask();
}

/** Probes now instead of at the planned time. */
export function retryNow(): void {
  if (present.answers) return;
  pause = FIRST_PAUSE_MS;
  void ask();
}

/** Resolves when the server is reachable. */
export async function waitUntilReachable(): Promise<void> {
  await ask();
  if (present.answers) return;
  await new Promise<void>((resolve) => {
    const unsubscribe = subscribe(() => {
      if (!present.answers) return;
      unsubscribe();
      resolve();
    });
  });
}

export function useConnection(): Connection {
  return useSyncExternalStore(subscribe, () => present);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function ask(): Promise<void> {
  asked ??= askOnce().finally(() => {
    asked = null;
  });
  return asked;
}

async function askOnce(): Promise<void> {
  if (timer !== null) clearTimeout(timer);
  timer = null;
  if (!present.answers) show({ ...present, nextAt: null });
  if (await isAlive()) {
    pause = FIRST_PAUSE_MS;
    if (!present.answers) show(ANSWERS);
    return;
  }
  const wait = pause * (0.75 + Math.random() / 2);
  pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  timer = setTimeout(() => void ask(), wait);
  show({ answers: false, lostAt: present.lostAt ?? Date.now(), nextAt: Date.now() + wait });
}

async function isAlive(): Promise<boolean> {
  try {
    const response = await fetch("/livez", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    return response.ok;
  } catch {
    return false;
  }
}

function show(next: Connection): void {
  present = next;
  for (const listener of listeners) listener();
}

window.addEventListener("online", retryNow);
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") retryNow();
});
