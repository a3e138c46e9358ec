/** The time scale of the timeline: its range and its tick marks. */

import { type Span, WORK } from "../model.ts";

export interface Scale {
  readonly from: number;
  readonly to: number;
}

const STEPS = [1, 1.5, 2, 3, 5, 7.5];

/** During a run, the end of the range moves in steps, so that ended bars rarely move. */
export function roomFor(elapsed: number): number {
  const size = 10 ** Math.floor(Math.log10(Math.max(elapsed, 100)));
  for (const step of [...STEPS, 10]) if (step * size >= elapsed * 1.02) return step * size;
  return 15 * size;
}

const ROUND = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 21_600_000, 43_200_000, 86_400_000,
];

/** Tick marks at round durations, about as many as requested. */
export function marksOf(length: number, wanted: number): readonly number[] {
  const least = length / Math.max(1, wanted);
  const day = ROUND[ROUND.length - 1]!;
  const distance = ROUND.find((each) => each >= least) ?? Math.ceil(least / day) * day;
  return Array.from({ length: Math.floor(length / distance) + 1 }, (_, number) => number * distance);
}

const LEAST_PX = { work: 7, wait: 3 };
/** Narrower bars have no pattern or icon. */
export const NARROW_PX = 6;

export interface Place {
  readonly left: number;
  readonly width: number;
}

/**
 * The positions of the bars of a row in pixels. Bars do not overlap, and short ones are widened for pointers at the
 * expense of their neighbours. The end of the row matches the time axis, unless the row is too short to be visible.
 */
export function placed(bars: readonly Span[], scale: Scale, now: number, width: number): readonly Place[] {
  const perMs = width / (scale.to - scale.from);
  const at = (time: number) => (time - scale.from) * perMs;
  const begin = bars.length === 0 ? 0 : at(bars[0]!.from);
  const end = Math.max(begin + LEAST_PX.work, ...bars.map(({ to }) => at(to ?? now)));
  const share = (end - begin) / bars.length;
  const least = bars.map(({ kind }) => Math.min(share, WORK.has(kind) ? LEAST_PX.work : LEAST_PX.wait));
  const places: { left: number; right: number }[] = [];
  let taken = begin;
  for (const [number, { from, to }] of bars.entries()) {
    const left = Math.max(taken, at(from));
    taken = Math.max(left + least[number]!, at(to ?? now));
    places.push({ left, right: taken });
  }
  // Move bars beyond the end back, and shrink those before them.
  let free = end;
  for (const [number, place] of [...places.entries()].reverse()) {
    place.right = Math.min(place.right, free);
    place.left = Math.min(place.left, place.right - least[number]!);
    free = place.left;
  }
  return places.map(({ left, right }) => ({ left, width: right - left }));
}

export function inPercent(at: number, scale: Scale): number {
  return ((at - scale.from) / (scale.to - scale.from)) * 100;
}
