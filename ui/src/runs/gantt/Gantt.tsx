/**
 * The timeline of a run: how each step spent its time on calls, remote work, queueing, backoff, or waiting for a person.
 *
 * Kinds differ in pattern as well as in colour, and each bar has a text alternative. The browser updates elapsed times.
 * Only visible rows are rendered, because there may be ten thousand.
 */

import { Group } from "@mantine/core";
import { useElementSize, useMergedRef } from "@mantine/hooks";
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useMemo, useRef, useState } from "react";

import type { Graph } from "../../graph/plan.ts";
import { compensationsOf, statusIn, stepOf } from "../model.ts";
import type { ChildGraph } from "../useChildGraphs.ts";
import { type LiveModel, useModel } from "../useRunModel.ts";
import { queuedFrom, type Wait, waitsOf } from "./bars.ts";
import classes from "./Gantt.module.css";
import { GanttRow } from "./GanttRow.tsx";
import { scrollRowIntoView, ROW_HEIGHT, RULER_HEIGHT, useScrollToSelection } from "./scrollRows.ts";
import { Legend, useKinds } from "./Legend.tsx";
import { compensationRows, insidesOf, readInsides, type Row, rowsOf } from "./rows.ts";
import { Pauses, Ruler } from "./Ruler.tsx";
import { useCallTimes } from "./useCallTimes.ts";
import { useRowKeys } from "./useRowKeys.ts";
import { useTimeScale } from "./useTimeScale.ts";
import { Zoom } from "./Zoom.tsx";

const NAMES_WIDTH = { wide: 200, narrow: 128 };
const NARROW = 560;
// The space to the right of the bars for the longest duration: "59.9 s" up to "999 h 59 min".
const DURATIONS_WIDTH = { seconds: 64, longer: 100 };
const MINUTE_MS = 60_000;

export function Gantt({
  run,
  graph,
  live,
  pictures,
  selected,
  attempt,
  onSelect,
  onOpenRun,
  open,
  onOpen,
}: {
  run: string;
  graph: Graph;
  live: LiveModel;
  /** The child runs of expanded steps. */
  pictures: ReadonlyMap<string, ChildGraph>;
  selected: string | null;
  attempt: number | null;
  onSelect: (step: string, attempt: number | null) => void;
  onOpenRun: (run: string, step: string, attempt: number | null) => void;
  open: ReadonlySet<string>;
  onOpen: (step: string) => void;
}) {
  const model = useModel(live);
  const scroller = useRef<HTMLDivElement>(null);
  const { ref: shown, width, height: room } = useElementSize();
  const scrolled = useMergedRef(scroller, shown);
  const [zoom, setZoom] = useState(1);
  const [scale, now] = useTimeScale(
    model,
    [...pictures.values()].map((picture) => picture.model),
  );
  const calls = useCallTimes(
    new Map([[run, model.seq], ...[...pictures.values()].map((child) => [child.run, child.model.seq] as const)]),
  );
  const insides = insidesOf(model);
  const undoing = compensationsOf(model)
    .map(({ name }) => name)
    .join(";");
  const rows = useMemo(
    () => [...rowsOf(graph, readInsides(insides), open, pictures), ...compensationRows(undoing)],
    [graph, insides, open, pictures, undoing],
  );
  const waits = useMemo(() => allWaits(graph, pictures), [graph, pictures]);
  const choose = useCallback(
    ({ node, name }: Row, which: number | null) => {
      const child = node === null ? undefined : pictures.get(node);
      if (child === undefined) onSelect(name, which);
      else onOpenRun(child.run, name, which);
    },
    [pictures, onSelect, onOpenRun],
  );
  const { stop, moveStop, onKeyDown } = useRowKeys(rows, selected, onOpen);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 8,
    scrollMargin: RULER_HEIGHT,
    // The focused row stays rendered when it is scrolled out of view.
    rangeExtractor: (range) =>
      [...new Set([...defaultRangeExtractor(range), stop])]
        .filter((place) => place < rows.length)
        .sort((one, other) => one - other),
  });
  useScrollToSelection(scroller, rows, selected, room);
  const zoomTo = useCallback((next: number) => {
    const element = scroller.current!;
    const middle = (element.scrollLeft + element.clientWidth / 2) / element.scrollWidth;
    setZoom(next);
    requestAnimationFrame(() => {
      element.scrollLeft = middle * element.scrollWidth - element.clientWidth / 2;
    });
  }, []);
  const names = width < NARROW ? NAMES_WIDTH.narrow : NAMES_WIDTH.wide;
  const durations = scale.to - scale.from < MINUTE_MS ? DURATIONS_WIDTH.seconds : DURATIONS_WIDTH.longer;
  const inner = names + Math.max(160, width - names) * zoom;
  return (
    <div
      className={classes["chart"]}
      style={{ "--names": `${names}px`, "--durations": `${durations}px` } as React.CSSProperties}
      data-testid="gantt"
    >
      <Group className={classes["bar-of-tools"]} justify="space-between" wrap="nowrap" gap="xs">
        <Legend kinds={useKinds(model, pictures)} pauses={model.pauses.length > 0} />
        <Zoom zoom={zoom} onZoom={zoomTo} />
      </Group>
      <div ref={scrolled} className={classes["scroller"]} role="region" aria-label="Timeline">
        <div
          role="table"
          aria-label="Timeline"
          aria-rowcount={rows.length + 1}
          style={{ width: inner, minHeight: "100%", position: "relative" }}
        >
          <Ruler scale={scale} width={inner - names} />
          <div
            role="rowgroup"
            className={classes["rows"]}
            style={{ height: virtual.getTotalSize() }}
            onKeyDown={(event) => onKeyDown(event, (place) => scrollRowIntoView(scroller.current!, place))}
            onFocus={moveStop}
          >
            <Pauses pauses={model.pauses} scale={scale} now={now} />
            {virtual.getVirtualItems().map((item) => {
              const row = rows[item.index]!;
              const child = row.node === null ? undefined : pictures.get(row.node);
              const told = child?.model ?? model;
              const step = stepOf(told, row.name) ?? null;
              return (
                <GanttRow
                  key={row.id}
                  row={row}
                  place={item.index}
                  top={item.start - RULER_HEIGHT}
                  step={step}
                  status={statusIn(told.status, step)}
                  ready={queuedFrom(told, step, waits.get(row.node)?.get(row.name))}
                  calls={calls.get(child?.run ?? run)?.get(row.name)}
                  scale={scale}
                  width={inner - names - durations}
                  end={step !== null && step.finishedAt === null ? now : 0}
                  selected={selected === row.id}
                  attempt={selected === row.id ? attempt : null}
                  isStop={item.index === stop}
                  onChoose={choose}
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

/** By the parent node of the run, and by step. */
function allWaits(
  graph: Graph,
  pictures: ReadonlyMap<string, ChildGraph>,
): ReadonlyMap<string | null, ReadonlyMap<string, Wait>> {
  const inner = [...pictures].map(([node, child]) => [node, waitsOf(child.graph)] as const);
  return new Map<string | null, ReadonlyMap<string, Wait>>([[null, waitsOf(graph)], ...inner]);
}
