/**
 * What each step did with its time: calls, long work at the agent, back-off, waiting for a person.
 *
 * Kinds differ in pattern as well as in colour, and each bar says in words what it is. Elapsed time ticks here, not on
 * the server.
 */

import { memo, useMemo } from "react";

import { lasting, useNow } from "../app/Moment.tsx";
import classes from "./Gantt.module.css";
import type { RunModel, Span, StepModel } from "./model.ts";

const WORDS: Record<Span["kind"], string> = {
  call: "called",
  remote: "works at the agent",
  backoff: "waits to try again",
  person: "waits for a person",
  paused: "paused",
};

interface Scale {
  readonly from: number;
  readonly to: number;
}

export function Gantt({
  model,
  order,
  selected,
  attempt,
  onSelect,
}: {
  model: RunModel;
  order: readonly string[];
  selected: string | null;
  attempt: number | null;
  onSelect: (step: string, attempt: number | null) => void;
}) {
  const running = model.startedAt !== null && model.finishedAt === null;
  const present = useNow();
  const scale = useMemo<Scale>(() => {
    const from = model.startedAt ?? present;
    return { from, to: Math.max(model.finishedAt ?? present, from + 1) };
  }, [model.startedAt, model.finishedAt, running ? present : 0]);
  return (
    <div className={classes["chart"]} role="table" aria-label="Time of each step" data-testid="gantt">
      <Ruler scale={scale} />
      {order.map((name) => (
        <Row
          key={name}
          name={name}
          step={model.steps.get(name) ?? null}
          scale={scale}
          selected={selected === name}
          attempt={selected === name ? attempt : null}
          onSelect={onSelect}
        />
      ))}
    </div>
  );
}

function Ruler({ scale }: { scale: Scale }) {
  const length = scale.to - scale.from;
  const marks = [0, 0.25, 0.5, 0.75, 1];
  return (
    <div className={classes["row"]} role="row">
      <div className={classes["name"]} role="columnheader">Step</div>
      <div className={classes["ruler"]} role="columnheader" aria-label={`0 to ${lasting(length)}`}>
        {marks.map((mark) => (
          <span key={mark} style={{ left: `${mark * 100}%` }}>{lasting(length * mark)}</span>
        ))}
      </div>
    </div>
  );
}

const Row = memo(function Row({
  name,
  step,
  scale,
  selected,
  attempt,
  onSelect,
}: {
  name: string;
  step: StepModel | null;
  scale: Scale;
  selected: boolean;
  attempt: number | null;
  onSelect: (step: string, attempt: number | null) => void;
}) {
  const length = scale.to - scale.from;
  return (
    <div className={classes["row"]} role="row" data-selected={selected || undefined}>
      <button type="button" className={classes["name"]} role="rowheader" onClick={() => onSelect(name, null)}>
        {name}
      </button>
      <div className={classes["bars"]} role="cell">
        {step?.spans.map((span, place) => {
          const to = span.to ?? scale.to;
          const words = `${name}, attempt ${span.attempt}: ${WORDS[span.kind]} for ${lasting(to - span.from)}${span.failed ? ", failed" : ""}`;
          return (
            <button
              key={place}
              type="button"
              className={classes["bar"]}
              data-kind={span.kind}
              data-failed={span.failed || undefined}
              data-chosen={attempt === span.attempt || undefined}
              style={{ left: `${((span.from - scale.from) / length) * 100}%`, width: `${((to - span.from) / length) * 100}%` }}
              title={words}
              aria-label={words}
              onClick={() => onSelect(name, span.attempt)}
            />
          );
        })}
      </div>
    </div>
  );
});
