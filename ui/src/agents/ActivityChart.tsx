/** An agent's activity per minute: calls with failures, and latency with the longest call of each minute. */

import { useElementSize } from "@mantine/hooks";
import { useId } from "react";

import { formatDuration, useTimeZone } from "../app/Timestamp.tsx";
import classes from "./agents.module.css";
import type { Activity } from "./queries.ts";
import { seriesOf, totalsOf } from "./health.ts";

const HEIGHT = 120;
const LEFT = 46;
const BOTTOM = 18;
const TOP = 8;
const MARKS = 5;
// Below this width, the axis has fewer labels.
const NARROW = 420;

interface Frame {
  readonly width: number;
  readonly length: number;
  readonly most: number;
}

export function CallsChart({ activity }: { activity: Activity }) {
  const { ref, width } = useElementSize();
  const { calls, failures } = seriesOf(activity);
  const totals = totalsOf(activity);
  const frame = { width, length: calls.length, most: Math.max(1, ...calls) };
  const well = calls.map((each, place) => each - failures[place]!);
  return (
    <div ref={ref}>
      <svg
        className={classes["chart"]}
        viewBox={`0 0 ${Math.max(width, 1)} ${HEIGHT}`}
        role="img"
        aria-label={`Calls per minute: ${totals.calls} in total, ${totals.failures} failed, at most ${frame.most} in one minute.`}
        data-testid="calls-chart"
      >
        <Axes frame={frame} activity={activity} word={(value) => value.toLocaleString()} />
        <path className={classes["well"]} d={bars(well, failures, frame)} />
        <path className={classes["failed"]} d={bars(failures, null, frame)} />
      </svg>
    </div>
  );
}

export function LatencyChart({ activity }: { activity: Activity }) {
  const { ref, width } = useElementSize();
  const { meanMs, longestMs } = seriesOf(activity);
  const { meanMs: mean, longestMs: longest } = totalsOf(activity);
  const frame = { width, length: meanMs.length, most: Math.max(1, longest ?? 1) };
  const summary =
    mean === null ? "no calls" : `${formatDuration(mean)} on average, ${formatDuration(longest ?? 0)} maximum`;
  return (
    <div ref={ref}>
      <svg
        className={classes["chart"]}
        viewBox={`0 0 ${Math.max(width, 1)} ${HEIGHT}`}
        role="img"
        aria-label={`Latency per minute: ${summary}.`}
        data-testid="latency-chart"
      >
        <Axes frame={frame} activity={activity} word={formatDuration} />
        <path
          className={classes["range"]}
          d={bars(
            longestMs.map((each) => each ?? 0),
            null,
            frame,
          )}
        />
        <path className={classes["line"]} d={line(meanMs, frame)} />
        <path className={classes["dots"]} d={dots(meanMs, frame)} />
      </svg>
    </div>
  );
}

function Axes({ frame, activity, word }: { frame: Frame; activity: Activity; word: (value: number) => string }) {
  const [zone] = useTimeZone();
  const id = useId();
  const begin = Date.parse(activity.from);
  const end = Date.parse(activity.to);
  const marks = frame.width < NARROW ? MARKS - 2 : MARKS;
  const clock = new Intl.DateTimeFormat(undefined, {
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    ...(zone === "utc" ? { timeZone: "UTC" } : {}),
  });
  return (
    <g aria-hidden>
      <path
        className={classes["base"]}
        d={`M${LEFT} ${HEIGHT - BOTTOM + 0.5}H${frame.width}M${LEFT} ${TOP}H${frame.width}`}
      />
      <text className={classes["axis"]} x={LEFT - 6} y={TOP + 4} textAnchor="end">
        {word(frame.most)}
      </text>
      <text className={classes["axis"]} x={LEFT - 6} y={HEIGHT - BOTTOM + 1} textAnchor="end">
        0
      </text>
      {Array.from({ length: marks }, (_, place) => {
        const share = place / (marks - 1);
        return (
          <text
            key={`${id}-${place}`}
            className={classes["axis"]}
            x={LEFT + share * (frame.width - LEFT)}
            y={HEIGHT - 3}
            textAnchor={place === 0 ? "start" : place === marks - 1 ? "end" : "middle"}
          >
            {clock.format(begin + share * (end - begin))}
          </text>
        );
      })}
    </g>
  );
}

function tall(value: number, { most }: Frame): number {
  return (value / most) * (HEIGHT - BOTTOM - TOP);
}

function bars(values: readonly number[], below: readonly number[] | null, frame: Frame): string {
  const step = (frame.width - LEFT) / frame.length;
  if (step <= 0) return "";
  const wide = Math.max(0.8, step - Math.min(2, step / 4));
  let path = "";
  values.forEach((value, place) => {
    if (value <= 0) return;
    const foot = HEIGHT - BOTTOM - tall(below?.[place] ?? 0, frame);
    const high = Math.max(1, tall(value, frame));
    path += `M${(LEFT + place * step).toFixed(1)} ${foot.toFixed(1)}v${(-high).toFixed(1)}h${wide.toFixed(1)}v${high.toFixed(1)}z`;
  });
  return path;
}

function line(values: readonly (number | null)[], frame: Frame): string {
  let path = "";
  values.forEach((value, place) => {
    if (value !== null) path += `${path === "" ? "M" : "L"}${point(value, place, frame)}`;
  });
  return path;
}

function dots(values: readonly (number | null)[], frame: Frame): string {
  let path = "";
  values.forEach((value, place) => {
    const isAlone = (values[place - 1] ?? null) === null && (values[place + 1] ?? null) === null;
    if (value !== null && isAlone) path += `M${point(value, place, frame)}h0.01`;
  });
  return path;
}

function point(value: number, place: number, frame: Frame): string {
  const step = Math.max(0, frame.width - LEFT) / frame.length;
  return `${(LEFT + (place + 0.5) * step).toFixed(1)} ${(HEIGHT - BOTTOM - tall(value, frame)).toFixed(1)}`;
}
