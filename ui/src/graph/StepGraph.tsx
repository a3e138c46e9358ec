/**
 * The graph of a workflow, plain or with a run's state in it.
 *
 * Nodes and edges keep their identity while nothing about them changes, and above 150 steps only what can be seen is
 * drawn: a run of 300 steps moves at the speed of the screen.
 */

import "@xyflow/react/dist/style.css";

import { Background, Controls, type Edge, MarkerType, type Node, ReactFlow, useNodesInitialized, useReactFlow } from "@xyflow/react";
import { useMantineColorScheme } from "@mantine/core";
import { useEffect, useMemo, useRef, useState } from "react";

import type { StepModel } from "../runs/model.ts";
import classes from "./graph.module.css";
import { type Direction, type GraphEdge, type Layout, layOut } from "./layout.ts";
import { RouteEdge, type RouteEdgeData } from "./RouteEdge.tsx";
import { StepNode, type StepNodeData } from "./StepNode.tsx";

export interface ShownStep {
  readonly name: string;
  readonly agent: string;
}

const SIZE = { width: 200, height: 64 };
const DRAW_ALL_UP_TO = 150;
const NODE_TYPES = { step: StepNode };
const EDGE_TYPES = { route: RouteEdge };
const ARROW = { type: MarkerType.ArrowClosed } as const;

export function StepGraph({
  steps,
  edges,
  states,
  selected,
  onSelect,
  direction,
}: {
  steps: readonly ShownStep[];
  edges: readonly GraphEdge[];
  states: ReadonlyMap<string, StepModel> | null;
  selected: string | null;
  onSelect: (step: string | null) => void;
  direction: Direction | null;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [layout, setLayout] = useState<Layout | null>(null);
  const { colorScheme } = useMantineColorScheme();

  useEffect(() => {
    let wanted = true;
    const { clientWidth: width, clientHeight: height } = place.current!;
    void layOut(steps.map(({ name }) => ({ name, ...SIZE })), edges, direction, { width, height }).then((found) => {
      if (wanted) setLayout(found);
    });
    return () => {
      wanted = false;
    };
  }, [steps, edges, direction]);

  const nodes = useNodes(steps, states, layout, selected);
  const drawn = useEdges(edges, states, layout);
  return (
    <div ref={place} className={classes["graph"]} data-testid="graph">
      {layout !== null && (
        <ReactFlow
          key={layout.direction}
          nodes={nodes}
          edges={drawn}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          colorMode={colorScheme === "auto" ? "system" : colorScheme}
          onlyRenderVisibleElements={steps.length > DRAW_ALL_UP_TO}
          nodesDraggable={false}
          nodesConnectable={false}
          edgesFocusable={false}
          minZoom={0.05}
          fitView
          onNodeClick={(_, node) => onSelect(node.id)}
          onPaneClick={() => onSelect(null)}
          proOptions={{ hideAttribution: true }}
        >
          <Background />
          <Controls showInteractive={false} />
          <Fitting layout={layout} />
        </ReactFlow>
      )}
    </div>
  );
}

/** Shows the whole graph once its steps have sizes. */
function Fitting({ layout }: { layout: Layout }) {
  const ready = useNodesInitialized();
  const { fitView } = useReactFlow();
  useEffect(() => {
    if (ready) void fitView({ padding: 0.08, maxZoom: 1 });
  }, [ready, layout, fitView]);
  return null;
}

function useNodes(
  steps: readonly ShownStep[],
  states: ReadonlyMap<string, StepModel> | null,
  layout: Layout | null,
  selected: string | null,
): Node<StepNodeData>[] {
  const kept = useRef(new Map<string, { key: readonly unknown[]; node: Node<StepNodeData> }>());
  return useMemo(() => {
    if (layout === null) return [];
    return steps.map(({ name, agent }) => {
      const state = states?.get(name) ?? null;
      const key = [layout, state, selected === name, agent, states === null];
      const before = kept.current.get(name);
      if (before !== undefined && before.key.every((value, place) => value === key[place])) return before.node;
      const node: Node<StepNodeData> = {
        id: name,
        type: "step",
        position: layout.places.get(name) ?? { x: 0, y: 0 },
        selected: selected === name,
        width: SIZE.width,
        height: SIZE.height,
        ariaLabel: `Step ${name}`,
        data: {
          name,
          agent,
          status: states === null ? null : (state?.status ?? "PENDING"),
          attempts: state?.attempts ?? 0,
          across: layout.direction === "RIGHT",
          note: state?.items === null || state === null ? null : `${state.items} items`,
        },
      };
      kept.current.set(name, { key, node });
      return node;
    });
  }, [steps, states, layout, selected]);
}

function useEdges(
  edges: readonly GraphEdge[],
  states: ReadonlyMap<string, StepModel> | null,
  layout: Layout | null,
): Edge<RouteEdgeData>[] {
  const kept = useRef(new Map<string, { route: unknown; taken: boolean; edge: Edge<RouteEdgeData> }>());
  return useMemo(() => {
    if (layout === null) return [];
    return edges.map(({ id, from, to }) => {
      const route = layout.routes.get(id) ?? [];
      const taken = states === null || (isOnTheWay(states.get(from)) && isOnTheWay(states.get(to)));
      const before = kept.current.get(id);
      if (before !== undefined && before.route === route && before.taken === taken) return before.edge;
      const edge: Edge<RouteEdgeData> = { id, source: from, target: to, type: "route", markerEnd: ARROW, data: { route, taken } };
      kept.current.set(id, { route, taken, edge });
      return edge;
    });
  }, [edges, states, layout]);
}

function isOnTheWay(step: StepModel | undefined): boolean {
  return step === undefined || (step.status !== "SKIPPED" && step.status !== "CANCELLED");
}
