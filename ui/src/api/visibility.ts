/**
 * Waiting, and page visibility.
 *
 * A browser opens at most six connections to one server. A hidden page closes its own: otherwise a few tabs with active
 * runs would keep the next one from loading.
 */

/** Resolves when the page is visible or the signal aborts. */
export function shown(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    document.addEventListener("visibilitychange", done);
    signal.addEventListener("abort", done);
  });
}

/** Calls back after the page was hidden for this long, or when the signal aborts. Returns a function that stops it. */
export function abortWhenHidden(hangUp: () => void, signal: AbortSignal, delayMs: number): () => void {
  let timer = 0;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = window.setTimeout(hangUp, delayMs);
  };
  look();
  signal.addEventListener("abort", hangUp, { once: true });
  document.addEventListener("visibilitychange", look);
  return () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", hangUp);
    document.removeEventListener("visibilitychange", look);
  };
}

export function wait(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
