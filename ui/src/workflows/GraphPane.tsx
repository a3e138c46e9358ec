/** The graph of a definition, loaded on demand. */

import { lazy, Suspense } from "react";

import { Loading } from "../app/Loading.tsx";
import type { Graph } from "./queries.ts";
import { useStableGraph } from "./useStableGraph.ts";
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
  const same = useStableGraph(graph);
  return (
    <div className={classes["graph"]}>
      <Suspense fallback={<Loading lines={3} />}>
        {same !== null && <StepGraph graph={same} selected={selected} onSelect={onSelect} />}
      </Suspense>
    </div>
  );
}
