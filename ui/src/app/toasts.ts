/** Short confirmations, shown for a few seconds in the corner of every page. */

import { useSyncExternalStore } from "react";

export interface Toast {
  readonly id: number;
  readonly kind: "done" | "failed";
  readonly text: string;
}

// Errors are shown longer than confirmations.
const SHOWN_MS = { done: 6_000, failed: 15_000 } as const;
const MOST_AT_ONCE = 4;

const listeners = new Set<() => void>();
let present: readonly Toast[] = [];
let last = 0;

export function toast(kind: Toast["kind"], text: string): void {
  const added: Toast = { id: ++last, kind, text };
  show([...present, added].slice(-MOST_AT_ONCE));
  setTimeout(() => dismiss(added.id), SHOWN_MS[kind]);
}

export function dismiss(id: number): void {
  const left = present.filter((each) => each.id !== id);
  if (left.length < present.length) show(left);
}

export function useToasts(): readonly Toast[] {
  return useSyncExternalStore(subscribe, () => present);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function show(next: readonly Toast[]): void {
  present = next;
  for (const listener of listeners) listener();
}
