/**
 * Whether Trunkline answers.
 *
 * A call that got no answer makes this page ask `/livez`; one lost call alone is no lost connection. While that fails,
 * too, it is asked again, ever more rarely, queries rest, and with the first answer all of them are made again.
 */

import { onlineManager } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";

export interface Connection {
  readonly answers: boolean;
  /** Since when it does not. */
  readonly lostAt: number | null;
  /** When it is asked next; null: right now. */
  readonly nextAt: number | null;
}

const ANSWERS: Connection = { answers: true, lostAt: null, nextAt: null };
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;
// A server that takes the call and then says nothing is as good as none.
const PATIENCE_MS = 5_000;

const listeners = new Set<() => void>();
let present = ANSWERS;
let asked: Promise<void> | null = null;
let pause = FIRST_PAUSE_MS;
let timer: ReturnType<typeof setTimeout> | null = null;

// Whether the machine has a network says nothing about a Trunkline on the same machine: only its answers count.
onlineManager.setEventListener((setOnline) => {
  const tell = () => setOnline(present.answers);
  listeners.add(tell);
  return () => listeners.delete(tell);
});

/** Somebody got no answer: see whether anybody would; until that is known. */
export async function doubtConnection(): Promise<void> {
  if (present.answers) await ask();
}

/** Ask now, whatever was planned. */
export function askAgain(): void {
  if (present.answers) return;
  pause = FIRST_PAUSE_MS;
  void ask();
}

/** For what can do nothing but wait. */
export async function untilItAnswers(): Promise<void> {
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

window.addEventListener("online", askAgain);
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") askAgain();
});
