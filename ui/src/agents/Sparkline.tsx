/** Sparklines of the last hour: calls and failures as bars, latency as a line. Each has a text alternative. */

import classes from "./agents.module.css";
import type { Series } from "./health.ts";

const WIDTH = 90;
const HEIGHT = 22;

export function CallBars({ series, label }: { series: Series; label: string }) {
  const most = Math.max(1, ...series.calls);
  const well = series.calls.map((calls, place) => calls - series.failures[place]!);
  return (
    <svg className={classes["spark"]} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <path className={classes["base"]} d={`M0 ${HEIGHT - 0.5}H${WIDTH}`} />
      <path className={classes["well"]} d={bars(well, series.failures, most)} />
      <path className={classes["failed"]} d={bars(series.failures, null, most)} />
    </svg>
  );
}

export function LatencyLine({ series, label }: { series: Series; label: string }) {
  const known = series.meanMs.filter((mean) => mean !== null);
  const most = Math.max(1, ...known);
  return (
    <svg className={classes["spark"]} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <path className={classes["base"]} d={`M0 ${HEIGHT - 0.5}H${WIDTH}`} />
      <path className={classes["line"]} d={line(series.meanMs, most)} />
      <path className={classes["dots"]} d={dots(series.meanMs, most)} />
    </svg>
  );
}

/** One path for all bars, which keeps a list of a thousand agents fast. Bars of `values` are stacked on those of `below`. */
function bars(values: readonly number[], below: readonly number[] | null, most: number): string {
  const step = WIDTH / values.length;
  const wide = Math.max(0.8, step - 0.4);
  let path = "";
  values.forEach((value, place) => {
    if (value <= 0) return;
    const foot = HEIGHT - scaled(below?.[place] ?? 0, most);
    const tall = Math.max(1, scaled(value, most));
    path += `M${(place * step).toFixed(2)} ${foot.toFixed(2)}v${(-tall).toFixed(2)}h${wide.toFixed(2)}v${tall.toFixed(2)}z`;
  });
  return path;
}

function scaled(value: number, most: number): number {
  return (value / most) * (HEIGHT - 2);
}

/** Connects each minute with calls to the next one with calls. */
function line(values: readonly (number | null)[], most: number): string {
  let path = "";
  values.forEach((value, place) => {
    if (value !== null) path += `${path === "" ? "M" : "L"}${point(value, place, values.length, most)}`;
  });
  return path;
}

/** A line through a single minute has no length, so such a minute gets a dot. */
function dots(values: readonly (number | null)[], most: number): string {
  let path = "";
  values.forEach((value, place) => {
    const isAlone = (values[place - 1] ?? null) === null && (values[place + 1] ?? null) === null;
    if (value !== null && isAlone) path += `M${point(value, place, values.length, most)}h0.01`;
  });
  return path;
}

function point(value: number, place: number, length: number, most: number): string {
  const step = WIDTH / length;
  const x = (place * step + step / 2).toFixed(2);
  const y = (HEIGHT - 2 - (value / most) * (HEIGHT - 5)).toFixed(2);
  return `${x} ${y}`;
}
