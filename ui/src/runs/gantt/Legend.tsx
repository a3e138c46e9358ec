/** What the patterns mean; only those that the run has. */

import { useMemo } from "react";

import type { RunModel, SpanKind } from "../model.ts";
import classes from "./Gantt.module.css";
import { KINDS } from "./kinds.ts";

export function Legend({ model }: { model: RunModel }) {
  const kinds = useMemo(() => {
    const found = new Set<SpanKind>(["call", "queued"]);
    for (const step of model.steps.values()) for (const { kind } of step.spans) found.add(kind);
    for (const item of model.items.values()) {
      if (found.size === Object.keys(KINDS).length) break;
      for (const { kind } of item.spans) found.add(kind);
    }
    return (Object.keys(KINDS) as SpanKind[]).filter((kind) => found.has(kind)).join(" ");
  }, [model.steps, model.items]);
  return (
    <ul className={classes["legend"]} aria-label="What the patterns mean">
      {(kinds.split(" ") as SpanKind[]).map((kind) => (
        <li key={kind}><span className={classes["swatch"]} data-kind={kind} aria-hidden /> {KINDS[kind].name}</li>
      ))}
      <li><span className={classes["swatch"]} data-kind="call" data-failed aria-hidden /> Failed</li>
      {model.pauses.length > 0 && <li><span className={classes["swatch"]} data-kind="paused" aria-hidden /> Paused</li>}
    </ul>
  );
}
