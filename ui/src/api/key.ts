/** The API key of this browser tab, where the server wants one: gone when the tab is. */

const NAME = "trunkline.key";
const listeners = new Set<() => void>();
const doubters = new Set<() => void>();

export const key = {
  read(): string | null {
    return sessionStorage.getItem(NAME);
  },
  write(value: string | null): void {
    if (value === null) sessionStorage.removeItem(NAME);
    else sessionStorage.setItem(NAME, value);
    for (const listener of listeners) listener();
  },
  /** Called when there is another key, or none any more. */
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
  /** The server did not take it: whoever asks people for keys should look. */
  doubt(): void {
    for (const listener of doubters) listener();
  },
  onDoubt(listener: () => void): () => void {
    doubters.add(listener);
    return () => doubters.delete(listener);
  },
};
