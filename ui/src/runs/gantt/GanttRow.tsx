/** A row of the timeline: the step's name, its bars and its duration. */

import { ChevronDown, ChevronRight } from "lucide-react";
import { memo } from "react";

import { formatDuration } from "../../app/Timestamp.tsx";
import { appearanceOf } from "../../app/StatusBadge.tsx";
import { isFinal, type Span, type StepModel, type StepStatus } from "../model.ts";
import { barsOf } from "./bars.ts";
import classes from "./Gantt.module.css";
import { KINDS } from "./spanKinds.ts";
import { fullName, type Row } from "./rows.ts";
import { NARROW_PX, placed, type Scale } from "./timeScale.ts";
import type { CallTimes } from "./useCallTimes.ts";

export const GanttRow = memo(function GanttRow({
  row,
  place,
  top,
  step,
  status,
  ready,
  calls,
  scale,
  width,
  end,
  selected,
  attempt,
  isStop,
  onChoose,
  onOpen,
}: {
  row: Row;
  place: number;
  top: number;
  step: StepModel | null;
  status: StepStatus;
  ready: number | null;
  calls: CallTimes | undefined;
  scale: Scale;
  /** The width of the bar area in pixels. */
  width: number;
  /** The end of open bars; 0 for ended steps, so that they do not rerender. */
  end: number;
  selected: boolean;
  attempt: number | null;
  /** The row that Tab focuses; arrow keys move on from there. */
  isStop: boolean;
  onChoose: (row: Row, attempt: number | null) => void;
  onOpen: (id: string) => void;
}) {
  const { id, name, index } = row;
  const { icon: Icon, word, color } = appearanceOf(status);
  const bars = step === null ? [] : barsOf(step, ready, calls);
  const places = placed(bars, scale, end, width);
  const last = places[places.length - 1];
  const spent = step?.startedAt == null ? null : (step.finishedAt ?? end) - step.startedAt;
  return (
    <div
      className={classes["row"]}
      role="row"
      aria-rowindex={place + 2}
      data-selected={selected || undefined}
      data-row={id}
      data-testid={`gantt-row-${id}`}
      data-status={status}
      style={{ transform: `translateY(${top}px)` }}
    >
      <div
        className={classes["name"]}
        role="rowheader"
        data-inner={row.depth > 0 || undefined}
        style={{ "--depth": row.depth } as React.CSSProperties}
      >
        {row.opens !== null && (
          <button
            type="button"
            className={classes["opener"]}
            tabIndex={-1}
            aria-expanded={row.open}
            aria-label={`${row.opens === "items" ? "Items" : "Steps"} of ${fullName(row)}`}
            data-testid={`gantt-open-${id}`}
            onClick={() => onOpen(id)}
          >
            {row.open ? <ChevronDown size={14} aria-hidden /> : <ChevronRight size={14} aria-hidden />}
          </button>
        )}
        <button
          type="button"
          className={classes["chooser"]}
          tabIndex={isStop ? 0 : -1}
          aria-pressed={selected}
          data-chooser
          {...(row.node === null ? {} : { title: fullName(row), "aria-label": `${word} ${fullName(row)}` })}
          onClick={() => onChoose(row, null)}
        >
          <Icon size={13} role="img" aria-label={word} style={{ color }} />
          <span>{index === null ? name : `[${index}]`}</span>
        </button>
      </div>
      <div
        className={classes["bars"]}
        role="cell"
        aria-label={
          bars.length === 0
            ? `${word}${step?.reason == null ? "" : `: ${step.reason}`}`
            : bars.map((bar) => barLabel(bar, end)).join("; ")
        }
        onClick={(event) => {
          const chosen = (event.target as HTMLElement).dataset["attempt"];
          onChoose(row, chosen === undefined ? null : Number(chosen));
        }}
      >
        {bars.map((bar, number) => (
          <span
            key={number}
            className={classes["bar"]}
            data-kind={bar.kind}
            data-attempt={bar.attempt}
            data-failed={bar.failed || undefined}
            data-goes-on={bar.to === null || undefined}
            data-chosen={attempt === bar.attempt || undefined}
            data-narrow={places[number]!.width < NARROW_PX || undefined}
            data-testid="bar"
            style={places[number]}
            title={barLabel(bar, end)}
          />
        ))}
        {last !== undefined && spent !== null && (
          <span className={classes["spent"]} style={{ left: last.left + last.width }}>
            {formatDuration(spent)}
          </span>
        )}
        {bars.length === 0 && isFinal(status) && (
          <span className={classes["idle"]} title={step?.reason ?? undefined}>
            {step === null ? "Not started" : step.kept ? "Reused" : word}
          </span>
        )}
      </div>
    </div>
  );
});

function barLabel(bar: Span, end: number): string {
  const length = formatDuration((bar.to ?? end) - bar.from);
  return `Attempt ${bar.attempt} ${KINDS[bar.kind].verb} for ${length}${bar.failed ? " and failed" : ""}`;
}
