/**
 * Lines that stay open, shared out among all pages of the browser.
 *
 * Over HTTP/1.1 a browser has six connections to a server, for all its tabs and windows together. If each of them held
 * on to its own, some open pages would keep the next one from loading. So one page hears the doorbell for all, and a few
 * follow their runs without a break; the rest look again and again.
 *
 * Where the browser has no locks (pages over plain HTTP from another machine) nobody can agree, and each takes what it
 * needs.
 */

const BELL = "trunkline.bell";
const SLOTS = ["trunkline.line.1", "trunkline.line.2", "trunkline.line.3"];

// Absent where the page is not from a safe place, whatever its type says.
const locks = navigator.locks as LockManager | undefined;

/** Does the work when it is this page's turn to hear the bell. */
export async function inTurn<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
  return locks === undefined ? work() : await locks.request(BELL, { signal }, work);
}

/** The way to give a line back; null: none is left. */
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
