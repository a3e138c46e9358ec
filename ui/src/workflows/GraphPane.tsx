/** The graph of a definition, loaded on demand. Blocks are groups that can be folded. */

import { lazy, Suspense, useCallback, useMemo, useState } from "react";

import { Loading } from "../app/Loading.tsx";
import { childId, type Inside } from "../graph/plan.ts";
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
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [opened, setOpened] = useState<string | null>(null);
  const insides = useMemo(() => (same === null ? new Map<string, Inside>() : blocksOf(same, folded)), [same, folded]);
  const toggle = useCallback((node: string) => {
    setOpened(node);
    setFolded((now) => {
      const next = new Set(now);
      if (!next.delete(node)) next.add(node);
      return next;
    });
  }, []);
  // A step inside a block selects the step of the workflow that it is a part of.
  const select = useCallback((node: string | null) => onSelect(node?.split("/", 1)[0] ?? null), [onSelect]);
  return (
    <div className={classes["graph"]}>
      <Suspense fallback={<Loading lines={3} />}>
        {same !== null && (
          <StepGraph
            graph={same}
            insides={insides}
            selected={selected}
            onSelect={select}
            onOpen={toggle}
            opened={opened}
          />
        )}
      </Suspense>
    </div>
  );
}

/** By node id, the content of the blocks that are not folded. */
function blocksOf(graph: Graph, folded: ReadonlySet<string>, within: string | null = null): Map<string, Inside> {
  const found = new Map<string, Inside>();
  for (const { name, block } of graph.steps) {
    const node = within === null ? name : childId(within, name);
    if (block === undefined || folded.has(node)) continue;
    found.set(node, { graph: block });
    for (const [id, inside] of blocksOf(block, folded, node)) found.set(id, inside);
  }
  return found;
}
