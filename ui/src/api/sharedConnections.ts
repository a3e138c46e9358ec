/**
 * Shares long-lived connections among all tabs of the browser.
 *
 * Over HTTP/1.1 a browser opens at most six connections to a server, for all tabs and windows together. If each tab held
 * one, the next tab could not load. So one tab receives the change notifications for all, and a few stream the events
 * of their runs; the rest poll.
 *
 * Where the browser has no locks (pages over plain HTTP from another machine), tabs cannot coordinate, and each opens
 * the connections that it needs.
 */

const LEADER_LOCK = "trunkline.run-changes";
const SLOTS = ["trunkline.line.1", "trunkline.line.2", "trunkline.line.3"];

// Undefined outside of secure contexts, although its type does not say so.
const locks = navigator.locks as LockManager | undefined;

/** Does the work when this tab becomes the one that holds the notification connection. */
export async function asLeader<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
  return locks === undefined ? work() : await locks.request(LEADER_LOCK, { signal }, work);
}

/** Returns a function that releases the connection, or null if none is free. */
export async function acquireConnection(): Promise<(() => void) | null> {
  if (locks === undefined) return () => undefined;
  for (const name of SLOTS) {
    const line = await taken(locks, name);
    if (line !== null) return line;
  }
  return null;
}

function taken(manager: LockManager, name: string): Promise<(() => void) | null> {
  return new Promise((resolve, reject) => {
    manager
      .request(name, { ifAvailable: true }, (lock) => {
        if (lock === null) {
          resolve(null);
          return;
        }
        return new Promise<void>((giveBack) => resolve(giveBack));
      })
      .catch(reject);
  });
}
