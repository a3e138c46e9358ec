/**
 * The server's time as this machine can know it: how long something has taken is told from the server's beginnings.
 *
 * Each answer says when it was made, to the second, and each live event to the millisecond. What they allow is an
 * interval for the difference of the two clocks; a clock that may be right is left alone.
 */

const SECOND = 1_000;

// The difference is this machine's clock less the server's.
let least = -Infinity;
let most = Infinity;

/** The server wrote `at`, to the second, between `asked` and now. */
export function hearAnswer(date: string | null, asked: number): void {
  const at = date === null ? NaN : Date.parse(date);
  if (Number.isNaN(at)) return;
  narrow(asked - at - SECOND, Date.now() - at);
}

/** Something happened at `at` and is known here: it is not in the future. */
export function hearEvent(at: number): void {
  narrow(-Infinity, Date.now() - at);
}

function narrow(from: number, to: number): void {
  least = Math.max(least, from);
  most = Math.min(most, to);
  // A clock that was set meanwhile: what was known before counts no more.
  if (least > most) [least, most] = from > -Infinity ? [from, to] : [-Infinity, to];
}

export function serverNow(): number {
  return Date.now() - Math.min(Math.max(0, least), most);
}
