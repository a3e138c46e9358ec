/** The API key of this browser tab, where the server wants one: gone when the tab is. */

const NAME = "trunkline.key";
const listeners = new Set<() => void>();

export const key = {
  read(): string | null {
    return sessionStorage.getItem(NAME);
  },
  write(value: string | null): void {
    if (value === null) sessionStorage.removeItem(NAME);
    else sessionStorage.setItem(NAME, value);
    for (const listener of listeners) listener();
  },
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};
