/** The time axis of the timeline, and the periods in which the run was paused. */

import { memo } from "react";

import { formatDuration } from "../../app/Timestamp.tsx";
import type { Pause } from "../model.ts";
import classes from "./Gantt.module.css";
import { inPercent, marksOf, type Scale } from "./timeScale.ts";

const MARK_EVERY_PX = 110;

export const Ruler = memo(function Ruler({ scale, width }: { scale: Scale; width: number }) {
  const length = scale.to - scale.from;
  return (
    <div className={classes["ruler"]} role="row" aria-rowindex={1}>
      <div className={classes["corner"]} role="columnheader">
        Step
      </div>
      <div className={classes["marks"]} role="columnheader" aria-label={`Time, 0 to ${formatDuration(length)}`}>
        {marksOf(length, width / MARK_EVERY_PX).map((mark) => (
          <span key={mark} style={{ left: `${(mark / length) * 100}%` }}>
            {mark === 0 ? "0" : formatDuration(mark)}
          </span>
        ))}
      </div>
    </div>
  );
});

/** A band behind all rows for a paused period. */
export function Pauses({ pauses, scale, now }: { pauses: readonly Pause[]; scale: Scale; now: number }) {
  if (pauses.length === 0) return null;
  return (
    <div className={classes["pauses"]} aria-hidden>
      {pauses.map(({ from, to }) => {
        const left = inPercent(from, scale);
        return (
          <span
            key={from}
            style={{ left: `${left}%`, width: `${inPercent(to ?? now, scale) - left}%` }}
            title="Paused"
          />
        );
      })}
    </div>
  );
}
