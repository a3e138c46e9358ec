/**
 * What each step did with its time: calls, work at the agent, queueing, back-off, waiting for a person.
 *
 * Kinds differ in pattern as well as in colour, and each bar says in words what it is. Elapsed time ticks here, not on
 * the server. Only the rows that can be seen are drawn: there may be ten thousand.
 */

import { ActionIcon, Group, Tooltip } from "@mantine/core";
import { useElementSize, useMergedRef } from "@mantine/hooks";
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { Maximize2, ZoomIn, ZoomOut } from "lucide-react";
import { memo, useCallback, useEffect, useMemo, useRef, useState } from "react";

import { lasting } from "../../app/Moment.tsx";
import type { Graph } from "../../graph/plan.ts";
import { isFinal, type RunModel, statusIn, stepOf } from "../model.ts";
import { useRunClock } from "../useRunClock.ts";
import { type LiveModel, useModel } from "../useRunModel.ts";
import classes from "./Gantt.module.css";
import { GanttRow } from "./GanttRow.tsx";
import { Legend, useKinds } from "./Legend.tsx";
import { needsOf, readTotals, readyAt, rowsOf, totalsOf } from "./rows.ts";
import { inPercent, marksOf, roomFor, type Scale } from "./scale.ts";
import { useCallTimes } from "./useCallTimes.ts";
import { useRowKeys } from "./useRowKeys.ts";

// As in the style sheet.
const ROW_HEIGHT = 28;
const RULER_HEIGHT = 25;
const NAMES_WIDTH = { wide: 200, narrow: 128 };
const NARROW = 560;
// To the right of the bars, for the last one's duration; as in the style sheet.
const MARGIN = 72;
const MARK_EVERY_PX = 110;
const MOST_ZOOM = 256;

/** What was brought into sight last, and how the rows stood then. */
interface Followed {
  readonly name: string | null;
  readonly room: number;
  readonly top: number;
}

export function Gantt({
  run,
  graph,
  live,
  selected,
  attempt,
  onSelect,
  open,
  onOpen,
}: {
  run: string;
  graph: Graph;
  live: LiveModel;
  selected: string | null;
  attempt: number | null;
  onSelect: (step: string, attempt: number | null) => void;
  open: ReadonlySet<string>;
  onOpen: (step: string) => void;
}) {
  const model = useModel(live);
  const scroller = useRef<HTMLDivElement>(null);
  const { ref: measured, width } = useElementSize();
  const { ref: shown, height: room } = useElementSize();
  const scrolled = useMergedRef(scroller, shown);
  const [zoom, setZoom] = useState(1);
  const [scale, now] = useScale(model);
  const calls = useCallTimes(run, model.seq);
  const totals = totalsOf(model);
  const rows = useMemo(() => rowsOf(graph, readTotals(totals), open), [graph, totals, open]);
  const needs = useMemo(() => needsOf(graph), [graph]);
  const plans = useMemo(() => new Map(graph.steps.map((step) => [step.name, step])), [graph]);
  const { stop, moveStop, onKeyDown } = useRowKeys(rows, selected, onOpen);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 8,
    scrollMargin: RULER_HEIGHT,
    // Where the keyboard is stays drawn, wherever the reader has scrolled.
    rangeExtractor: (range) => [...new Set([...defaultRangeExtractor(range), stop])].filter((place) => place < rows.length).sort((one, other) => one - other),
  });
  // Once for each choice, as soon as its row is there, and again while the room for it is still changing: after that the
  // reader scrolls.
  const followed = useRef<Followed | null>(null);
  useEffect(() => {
    const element = scroller.current;
    if (element === null || room === 0) return;
    const last = followed.current;
    if (last?.name === selected && (last.room === room || last.top !== element.scrollTop)) return;
    const place = selected === null ? -1 : rows.findIndex((row) => row.name === selected);
    if (selected !== null && place < 0) return;
    if (place >= 0) bringInSight(element, place);
    followed.current = { name: selected, room, top: element.scrollTop };
  }, [selected, rows, room]);
  const zoomTo = useCallback((next: number) => {
    const element = scroller.current!;
    const middle = (element.scrollLeft + element.clientWidth / 2) / element.scrollWidth;
    setZoom(next);
    requestAnimationFrame(() => {
      element.scrollLeft = middle * element.scrollWidth - element.clientWidth / 2;
    });
  }, []);
  const names = width < NARROW ? NAMES_WIDTH.narrow : NAMES_WIDTH.wide;
  const inner = names + Math.max(160, width - names) * zoom;
  return (
    <div className={classes["chart"]} ref={measured} style={{ "--names": `${names}px` } as React.CSSProperties} data-testid="gantt">
      <Group className={classes["bar-of-tools"]!} justify="space-between" wrap="nowrap" gap="xs">
        <Legend kinds={useKinds(model)} pauses={model.pauses.length > 0} />
        <Zoom zoom={zoom} onZoom={zoomTo} />
      </Group>
      <div ref={scrolled} className={classes["scroller"]} role="region" aria-label="Time of each step">
        <div
          role="table"
          aria-label="Time of each step"
          aria-rowcount={rows.length + 1}
          style={{ width: inner, minHeight: "100%", position: "relative" }}
        >
          <Ruler scale={scale} width={inner - names} />
          <div
            role="rowgroup"
            className={classes["rows"]}
            style={{ height: virtual.getTotalSize() }}
            onKeyDown={(event) => onKeyDown(event, (place) => bringInSight(scroller.current!, place))}
            onFocus={moveStop}
          >
            <Pauses pauses={model.pauses} scale={scale} now={now} />
            {virtual.getVirtualItems().map((item) => {
              const row = rows[item.index]!;
              const step = stepOf(model, row.name) ?? null;
              const plan = plans.get(row.name);
              const ready = plan === undefined || (step !== null && isFinal(step.status) && step.spans.length === 0)
                ? null
                : readyAt(model, plan, needs.get(row.name) ?? []);
              return (
                <GanttRow
                  key={row.name}
                  row={row}
                  place={item.index}
                  top={item.start - RULER_HEIGHT}
                  step={step}
                  status={statusIn(model.status, step)}
                  ready={isFinal(model.status) && step === null ? null : ready}
                  calls={calls.get(row.name)}
                  scale={scale}
                  width={inner - names - MARGIN}
                  end={step !== null && step.finishedAt === null ? now : 0}
                  selected={selected === row.name}
                  attempt={selected === row.name ? attempt : null}
                  isStop={item.index === stop}
                  onSelect={onSelect}
                  onOpen={onOpen}
                />
              );
            })}
          </div>
        </div>
      </div>
    </div>
  );
}

/** The chart's ends, and the end of bars that go on. */
/** As little as is needed: below the ruler, which covers the top, and above the end. */
function bringInSight(scroller: HTMLElement, place: number): void {
  const above = place * ROW_HEIGHT;
  const below = above + RULER_HEIGHT + ROW_HEIGHT - scroller.clientHeight;
  if (scroller.scrollTop > above) scroller.scrollTop = above;
  else if (scroller.scrollTop < below) scroller.scrollTop = below;
}

function useScale(model: RunModel): readonly [Scale, number] {
  const goesOn = model.startedAt !== null && model.finishedAt === null;
  const present = useRunClock(goesOn);
  const now = model.finishedAt ?? Math.max(present, model.lastAt ?? 0);
  const from = model.startedAt ?? now;
  const to = from + (goesOn ? roomFor(now - from) : Math.max(1, now - from));
  return [useMemo(() => ({ from, to }), [from, to]), now];
}

const Ruler = memo(function Ruler({ scale, width }: { scale: Scale; width: number }) {
  const length = scale.to - scale.from;
  return (
    <div className={classes["ruler"]} role="row" aria-rowindex={1}>
      <div className={classes["corner"]} role="columnheader">Step</div>
      <div className={classes["marks"]} role="columnheader" aria-label={`Time, 0 to ${lasting(length)}`}>
        {marksOf(length, width / MARK_EVERY_PX).map((mark) => (
          <span key={mark} style={{ left: `${(mark / length) * 100}%` }}>{mark === 0 ? "0" : lasting(mark)}</span>
        ))}
      </div>
    </div>
  );
});

/** The whole run stands still: a band behind all rows. */
function Pauses({ pauses, scale, now }: { pauses: RunModel["pauses"]; scale: Scale; now: number }) {
  if (pauses.length === 0) return null;
  return (
    <div className={classes["pauses"]} aria-hidden>
      {pauses.map(({ from, to }) => {
        const left = inPercent(from, scale);
        return <span key={from} style={{ left: `${left}%`, width: `${inPercent(to ?? now, scale) - left}%` }} title="Paused" />;
      })}
    </div>
  );
}

const Zoom = memo(function Zoom({ zoom, onZoom }: { zoom: number; onZoom: (zoom: number) => void }) {
  const tools = [
    { name: "Zoom out", icon: ZoomOut, next: Math.max(1, zoom / 2), id: "out" },
    { name: "Zoom in", icon: ZoomIn, next: Math.min(MOST_ZOOM, zoom * 2), id: "in" },
    { name: "Show the whole time", icon: Maximize2, next: 1, id: "fit" },
  ];
  return (
    <Group gap={4} wrap="nowrap">
      {tools.map(({ name, icon: Icon, next, id }) => (
        <Tooltip key={id} label={name} openDelay={400}>
          <ActionIcon variant="default" size={26} aria-label={name} disabled={next === zoom} onClick={() => onZoom(next)} data-testid={`gantt-${id}`}>
            <Icon size={13} aria-hidden />
          </ActionIcon>
        </Tooltip>
      ))}
    </Group>
  );
});
