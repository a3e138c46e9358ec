/** A definition's graph, drawn by what draws those of runs; loaded when it is needed. */

import { lazy, Suspense } from "react";

import { Loading } from "../app/Loading.tsx";
import type { Graph } from "./queries.ts";
import { useSameGraph } from "./useSameGraph.ts";
import classes from "./workflows.module.css";

const StepGraph = lazy(async () => ({ default: (await import("../graph/StepGraph.tsx")).StepGraph }));

export function GraphPane({
  graph,
  selected,
  onSelect,
}: {
  graph: Graph;
  selected: string | null;
  onSelect: (step: string | null) => void;
}) {
  const same = useSameGraph(graph);
  return (
    <div className={classes["graph"]}>
      <Suspense fallback={<Loading lines={3} />}>
        {same !== null && <StepGraph graph={same} selected={selected} onSelect={onSelect} />}
      </Suspense>
    </div>
  );
}
