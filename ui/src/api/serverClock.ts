/**
 * Estimates the server's clock, so that durations can be computed from the server's timestamps.
 *
 * Each response carries its time in seconds, each live event in milliseconds. Together they give an interval for the
 * difference between the two clocks. If the interval contains zero, the local clock is used unchanged.
 */

const SECOND = 1_000;

// The difference is the local clock minus the server's.
let least = -Infinity;
let most = Infinity;

/** The server wrote `at`, in whole seconds, between `asked` and now. */
export function recordResponseTime(date: string | null, asked: number): void {
  const at = date === null ? NaN : Date.parse(date);
  if (Number.isNaN(at)) return;
  narrow(asked - at - SECOND, Date.now() - at);
}

/** An event happened at `at` and has arrived, so `at` is not in the future. */
export function recordEventTime(at: number): void {
  narrow(-Infinity, Date.now() - at);
}

function narrow(from: number, to: number): void {
  least = Math.max(least, from);
  most = Math.min(most, to);
  // One of the clocks was adjusted: start over.
  if (least > most) [least, most] = from > -Infinity ? [from, to] : [-Infinity, to];
}

export function serverNow(): number {
  return Date.now() - Math.min(Math.max(0, least), most);
}
