/**
 * What keys do on this page. A page says what it can do with `useShortcut`; `?` lists what works right now.
 *
 * Keys are written as they are pressed: `j`, `/`, `?`, `Escape`, `g r` (one after the other), `mod+k` (Ctrl, or Cmd on
 * a Mac). They are left alone while one types in a field or an editor and while a dialog is open, but for those with
 * `mod`.
 */

import { useEffect, useRef, useSyncExternalStore } from "react";

export interface Shortcut {
  readonly keys: string;
  readonly description: string;
  /** Where it works: on the page that is shown, or on all of them. */
  readonly scope: "page" | "everywhere";
}

interface Registered extends Shortcut {
  /** Null: the key works by itself. */
  readonly handler: (() => void) | null;
}

// How long the first of two keys waits for the second.
const SEQUENCE_MS = 1_500;

const listeners = new Set<() => void>();
let registered: readonly Registered[] = [];
let begun: { readonly key: string; readonly at: number } | null = null;

/** `keys` do this as long as the component is there; with `enabled` false they do nothing and are not listed. */
export function useShortcut(keys: string, description: string, handler: () => void, enabled = true): void {
  useKeys(keys, description, handler, "page", enabled);
}

/** For a key that does so by itself, as Enter does on a link: it is listed, and left alone. */
export function useListedKey(keys: string, description: string): void {
  useKeys(keys, description, null, "page", true);
}

/** For the shell. */
export function useShortcutEverywhere(keys: string, description: string, handler: () => void): void {
  useKeys(keys, description, handler, "everywhere", true);
}

function useKeys(
  keys: string,
  description: string,
  handler: (() => void) | null,
  scope: Shortcut["scope"],
  enabled: boolean,
): void {
  const latest = useRef(handler);
  useEffect(() => {
    latest.current = handler;
  });
  const isListed = handler === null;
  useEffect(() => {
    if (!enabled) return;
    const shortcut = { keys, description, scope, handler: isListed ? null : () => latest.current?.() };
    change([...registered, shortcut]);
    return () => change(registered.filter((each) => each !== shortcut));
  }, [keys, description, scope, enabled, isListed]);
}

/** What works on this page, in the order in which it came. */
export function useShortcuts(): readonly Shortcut[] {
  return useSyncExternalStore(listen, () => registered);
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function change(next: readonly Registered[]): void {
  registered = next;
  for (const listener of listeners) listener();
}

document.addEventListener("keydown", (event) => {
  const key = written(event);
  if (event.defaultPrevented || event.isComposing || key === null) return;
  const withModifier = key.startsWith("mod+");
  if (!withModifier && (isTyping(event.target) || isDialogOpen())) return;
  const sequence = begun !== null && event.timeStamp - begun.at < SEQUENCE_MS ? `${begun.key} ${key}` : null;
  begun = null;
  // The latest wins: a page may have its own meaning for a key of the shell's.
  const found = (sequence === null ? undefined : find(sequence)) ?? find(key);
  if (found?.handler != null) {
    event.preventDefault();
    found.handler();
  } else if (registered.some((each) => each.keys.startsWith(`${key} `))) {
    begun = { key, at: event.timeStamp };
  }
});

function find(keys: string): Registered | undefined {
  return registered.findLast((each) => each.keys === keys && each.handler !== null);
}

function written(event: KeyboardEvent): string | null {
  if (event.altKey) return null;
  const key = event.key.length === 1 && !event.shiftKey ? event.key.toLowerCase() : event.key;
  return event.ctrlKey || event.metaKey ? `mod+${key}` : key;
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio]), textarea, select"))
  );
}

function isDialogOpen(): boolean {
  return document.querySelector('[role="dialog"][aria-modal="true"]') !== null;
}
