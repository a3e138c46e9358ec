/**
 * Keyboard shortcuts. Pages register theirs with `useShortcut`; `?` lists those that are active.
 *
 * Keys are written as they are pressed: `j`, `/`, `?`, `Escape`, `g r` (one after the other), `mod+k` (Ctrl, or Cmd on
 * a Mac). In fields, editors and dialogs only shortcuts with `mod` are active.
 */

import { useEffect, useRef, useSyncExternalStore } from "react";

export interface Shortcut {
  readonly keys: string;
  readonly description: string;
  /** Whether it belongs to the current page or to all pages. */
  readonly scope: "page" | "everywhere";
}

interface Registered extends Shortcut {
  /** Null if the browser handles the key. */
  readonly handler: (() => void) | null;
}

// The time between the two keys of a sequence.
const SEQUENCE_MS = 1_500;

const listeners = new Set<() => void>();
let registered: readonly Registered[] = [];
let begun: { readonly key: string; readonly at: number } | null = null;

/** Registers a shortcut while the component is mounted. With `enabled` false it is inactive and not listed. */
export function useShortcut(keys: string, description: string, handler: () => void, enabled = true): void {
  useKeys(keys, description, handler, "page", enabled);
}

/** Lists a key that the browser handles, such as Enter on a link. */
export function useListedKey(keys: string, description: string): void {
  useKeys(keys, description, null, "page", true);
}

/** Installs the key listener; used by the shell. */
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

/** The active shortcuts, in the order of their registration. */
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
  // The latest registration wins, so a page can override a shortcut of the shell.
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
