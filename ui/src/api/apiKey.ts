/**
 * The API key, if the server requires one. Each tab keeps it in its session storage, so it is gone after the last tab.
 *
 * Tabs tell each other about the latest change: a new key, or a sign-out. A tab that loads asks the others, because it
 * may be new or have missed a message.
 */

const NAME = "trunkline.key";
const SINCE = "trunkline.key.since";

interface StoredKey {
  readonly value: string | null;
  readonly since: number;
}

const tabs = new BroadcastChannel(NAME);
const listeners = new Set<() => void>();
const recheckListeners = new Set<() => void>();
let isRefused = false;

tabs.onmessage = ({ data }: MessageEvent<StoredKey | { readonly newerThan: number }>) => {
  if ("newerThan" in data) {
    if (since() > data.newerThan && !isRefused)
      tabs.postMessage({ value: key.read(), since: since() } satisfies StoredKey);
  } else if (data.since > since()) keep(data);
};

function since(): number {
  return Number(sessionStorage.getItem(SINCE));
}

function keep(stored: StoredKey): void {
  const isChanged = stored.value !== key.read() || isRefused;
  sessionStorage.setItem(SINCE, String(stored.since));
  if (stored.value === null) sessionStorage.removeItem(NAME);
  else sessionStorage.setItem(NAME, stored.value);
  isRefused = false;
  if (isChanged) for (const listener of listeners) listener();
}

export const key = {
  read: (): string | null => sessionStorage.getItem(NAME),
  /** Stores the key in all tabs. */
  write(value: string | null): void {
    // Always later than the previous change, even if the clock was set back.
    const stored: StoredKey = { value, since: Math.max(Date.now(), since() + 1) };
    keep(stored);
    tabs.postMessage(stored);
  },
  /** The listener is called when the key changes, is removed, or is entered again after a rejection. */
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
  /** The server rejected the key: this tab does not share it any more. */
  refuse(): void {
    isRefused = true;
  },
  /** Asks for a check of whether the server still accepts the key. */
  recheck(): void {
    for (const listener of recheckListeners) listener();
  },
  onRecheck(listener: () => void): () => void {
    recheckListeners.add(listener);
    return () => recheckListeners.delete(listener);
  },
};

tabs.postMessage({ newerThan: since() });
