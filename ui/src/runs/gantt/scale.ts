/** Times on the chart: its ends, and the marks of its ruler. */

import { type Span, WORK } from "../model.ts";

export interface Scale {
  readonly from: number;
  readonly to: number;
}

const STEPS = [1, 1.5, 2, 3, 5, 7.5];

/** While a run goes on the chart's end moves rarely, and in jumps: bars that have ended stand still in between. */
export function roomFor(elapsed: number): number {
  const size = 10 ** Math.floor(Math.log10(Math.max(elapsed, 100)));
  for (const step of [...STEPS, 10]) if (step * size >= elapsed * 1.02) return step * size;
  return 15 * size;
}

const ROUND = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 21_600_000, 43_200_000, 86_400_000,
];

/** Round distances from the beginning, about as many as asked for. */
export function marksOf(length: number, wanted: number): readonly number[] {
  const least = length / Math.max(1, wanted);
  const day = ROUND[ROUND.length - 1]!;
  const distance = ROUND.find((each) => each >= least) ?? Math.ceil(least / day) * day;
  return Array.from({ length: Math.floor(length / distance) + 1 }, (_, number) => number * distance);
}

const LEAST_PX = { work: 7, wait: 3 };
const CROWDED = 24;

/** Where the bars of a row stand, in pixels: short ones are as wide as a hand needs, and none covers another. */
export function placed(bars: readonly Span[], scale: Scale, now: number, width: number): readonly { readonly left: number; readonly width: number }[] {
  const perMs = width / (scale.to - scale.from);
  const crowded = bars.length > CROWDED;
  let taken = 0;
  return bars.map(({ kind, from, to }) => {
    const left = Math.max(taken, (from - scale.from) * perMs);
    const least = crowded ? 1 : WORK.has(kind) ? LEAST_PX.work : LEAST_PX.wait;
    const right = Math.max(left + least, ((to ?? now) - scale.from) * perMs);
    taken = right;
    return { left, width: right - left };
  });
}

export function inPercent(at: number, scale: Scale): number {
  return ((at - scale.from) / (scale.to - scale.from)) * 100;
}
