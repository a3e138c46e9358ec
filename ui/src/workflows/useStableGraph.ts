/** Keeps the identity of an unchanged graph, so that it is not laid out again. */

import { useRef } from "react";

import type { Graph } from "./queries.ts";

export function useStableGraph(graph: Graph | null): Graph | null {
  const kept = useRef<{ key: string; graph: Graph } | null>(null);
  if (graph === null) return null;
  const key = JSON.stringify([graph.steps, graph.edges]);
  if (kept.current?.key !== key) kept.current = { key, graph };
  return kept.current.graph;
}
