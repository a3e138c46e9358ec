/** The legend of the patterns that the run uses. */

import { memo, useMemo, useRef } from "react";

import type { RunModel, SpanKind } from "../model.ts";
import type { ChildGraph } from "../useChildGraphs.ts";
import classes from "./Gantt.module.css";
import { KINDS } from "./spanKinds.ts";

/** The kinds of time that are shown, as one string, so that an unchanged value causes no render. */
export function useKinds(model: RunModel, pictures: ReadonlyMap<string, ChildGraph>): string {
  const known = useRef(new Set<SpanKind>(["call", "queued"]));
  return useMemo(() => {
    const found = known.current;
    const inner = [...pictures.values()].map((picture) => picture.model.steps);
    for (const steps of [model.steps, model.items, ...inner]) {
      for (const { spans } of steps.values()) for (const { kind } of spans) found.add(kind);
    }
    return (Object.keys(KINDS) as SpanKind[]).filter((kind) => found.has(kind)).join(" ");
  }, [model.steps, model.items, pictures]);
}

export const Legend = memo(function Legend({ kinds, pauses }: { kinds: string; pauses: boolean }) {
  return (
    <ul className={classes["legend"]} aria-label="Legend">
      {(kinds.split(" ") as SpanKind[]).map((kind) => (
        <li key={kind}>
          <span className={classes["swatch"]} data-kind={kind} aria-hidden /> {KINDS[kind].name}
        </li>
      ))}
      <li>
        <span className={classes["swatch"]} data-kind="call" data-failed aria-hidden /> Failed
      </li>
      {pauses && (
        <li>
          <span className={classes["swatch"]} data-kind="paused" aria-hidden /> Paused
        </li>
      )}
    </ul>
  );
});
