/**
 * The API key, where the server wants one: each open tab keeps it for its session, and it is gone when the last tab is.
 *
 * Tabs tell each other what was said last: a key, or that there is none any more. One that begins asks the others, for it
 * may be new, or have been away when they were told.
 */

const NAME = "trunkline.key";
const SINCE = "trunkline.key.since";

interface Said {
  readonly value: string | null;
  readonly since: number;
}

const tabs = new BroadcastChannel(NAME);
const listeners = new Set<() => void>();
const doubters = new Set<() => void>();
let isRefused = false;

tabs.onmessage = ({ data }: MessageEvent<Said | { readonly newerThan: number }>) => {
  if ("newerThan" in data) {
    if (since() > data.newerThan && !isRefused) tabs.postMessage({ value: key.read(), since: since() } satisfies Said);
  } else if (data.since > since()) keep(data);
};

function since(): number {
  return Number(sessionStorage.getItem(SINCE));
}

function keep(said: Said): void {
  const isNews = said.value !== key.read() || isRefused;
  sessionStorage.setItem(SINCE, String(said.since));
  if (said.value === null) sessionStorage.removeItem(NAME);
  else sessionStorage.setItem(NAME, said.value);
  isRefused = false;
  if (isNews) for (const listener of listeners) listener();
}

export const key = {
  read: (): string | null => sessionStorage.getItem(NAME),
  /** For all tabs. */
  write(value: string | null): void {
    // Later than what was said before, whatever the clock says.
    const said: Said = { value, since: Math.max(Date.now(), since() + 1) };
    keep(said);
    tabs.postMessage(said);
  },
  /** Called when there is another key, none any more, or one again that was refused before. */
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
  /** The server did not take it: no other tab gets it from here. */
  refuse(): void {
    isRefused = true;
  },
  /** Whoever asks people for keys should look whether the server still takes it. */
  doubt(): void {
    for (const listener of doubters) listener();
  },
  onDoubt(listener: () => void): () => void {
    doubters.add(listener);
    return () => doubters.delete(listener);
  },
};

tabs.postMessage({ newerThan: since() });
