/**
 * The graph of a workflow, optionally with the state of a run.
 *
 * The nodes and edges change only with the layout; steps get their status separately (`live.ts`). Above 150 steps, only
 * the visible part is rendered.
 */

import "@xyflow/react/dist/style.css";

import { Loader, useComputedColorScheme } from "@mantine/core";
import { Background, MarkerType, type Node, ReactFlow, ReactFlowProvider } from "@xyflow/react";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import type { StepModel } from "../runs/model.ts";
import { DirectionSwitch, useDirection } from "./DirectionSwitch.tsx";
import { ViewportControl } from "./ViewportControl.tsx";
import classes from "./graph.module.css";
import { GraphMinimap } from "./GraphMinimap.tsx";
import { GraphToolbar } from "./GraphToolbar.tsx";
import { ItemNode } from "./ItemNode.tsx";
import { type Direction, type Layout, layOut } from "./layout.ts";
import { type GraphActions, GraphContext, Live } from "./graphState.ts";
import { childId, depthOf, type Graph, type Inside, isSlot, planOf, slotId } from "./plan.ts";
import { RouteEdge, type RouteEdgeType } from "./RouteEdge.tsx";
import { StepNode } from "./StepNode.tsx";
import { useArrowKeys } from "./useArrowKeys.ts";
import { useRevealNode } from "./useRevealNode.ts";

const DRAW_ALL_UP_TO = 150;
const NODE_TYPES = { step: StepNode, item: ItemNode };
const EDGE_TYPES = { route: RouteEdge };
const ARROW = { type: MarkerType.ArrowClosed, width: 16, height: 16 } as const;
// React Flow passes no clicks to nodes that cannot be dragged or selected, so the nodes have their own buttons.
const TOUCHABLE = { pointerEvents: "all" } as const;
const NOTHING_INSIDE: ReadonlyMap<string, Inside> = new Map();

export interface StepGraphProps {
  readonly graph: Graph;
  /** State by node id: step names, `plan.slotId`, `plan.childId`. Undefined for a workflow without a run. */
  readonly states?: ReadonlyMap<string, StepModel> | null;
  /** The run has ended: pending steps will never start. */
  readonly over?: boolean;
  readonly insides?: ReadonlyMap<string, Inside>;
  /** The id of the selected node. */
  readonly selected?: string | null;
  /** The name that was selected, if it differs from the node id. */
  readonly chosen?: string | null;
  readonly onSelect?: (id: string | null) => void;
  /** Expands or collapses a step; undefined if steps cannot be expanded. */
  readonly onOpen?: (id: string) => void;
  /** The node that was expanded or collapsed last. */
  readonly opened?: string | null;
  /** The node to show first if nothing is selected and the graph does not fit; the first step by default. */
  readonly begin?: string | null;
}

export function StepGraph(props: StepGraphProps) {
  return (
    <ReactFlowProvider>
      <Drawn {...props} />
    </ReactFlowProvider>
  );
}

function Drawn({
  graph,
  states = null,
  over = false,
  insides = NOTHING_INSIDE,
  selected = null,
  chosen = selected,
  onSelect,
  onOpen,
  opened = null,
  begin = null,
}: StepGraphProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [direction, setDirection] = useDirection();
  const [layout, setLayout] = useState<{ found: Layout; nodes: Node[]; edges: RouteEdgeType[] } | null>(null);
  const [failure, setFailure] = useState<Error | null>(null);
  const scheme = useComputedColorScheme("light");
  const live = useMemo(() => new Live(), []);
  const acts = useActsOf(live, onSelect, onOpen);
  const opens = onOpen !== undefined;
  // The automatic direction is determined once, so that expanding a step does not turn the graph.
  const found = useRef<{ graph: Graph; direction: Direction } | null>(null);

  useEffect(() => {
    let wanted = true;
    const { clientWidth: width, clientHeight: height } = frame.current!;
    const known = found.current?.graph === graph ? found.current.direction : null;
    layOut(planOf(graph, insides), direction ?? known, { width, height }).then(
      (done) => {
        if (!wanted) return;
        found.current = direction === null ? { graph, direction: done.direction } : null;
        live.moveStop(live.stop ?? graph.steps[0]?.name ?? "");
        setLayout({ found: done, nodes: nodesOf(graph, insides, done, opens), edges: edgesOf(graph, insides, done) });
      },
      (error: unknown) => {
        if (wanted) setFailure(error instanceof Error ? error : new Error(String(error)));
      },
    );
    return () => {
      wanted = false;
    };
  }, [graph, insides, direction, live, opens]);

  useLayoutEffect(() => live.show(states, over, selected), [live, states, over, selected]);
  const following = useMemo(
    () => (selected === null || chosen === null ? null : { node: selected, name: chosen }),
    [selected, chosen],
  );
  const bring = useRevealNode(layout?.found ?? null);
  const onKeyDown = useArrowKeys(live, layout?.found ?? null, bring);
  if (failure !== null) throw failure;
  return (
    <div
      className={classes["graph"]}
      data-testid="graph"
      data-direction={layout?.found.direction}
      onKeyDown={onKeyDown}
      onFocus={(event) => bringFocused(event.target, bring)}
    >
      <GraphContext.Provider value={acts}>
        <GraphToolbar layout={layout?.found ?? null}>
          <DirectionSwitch value={direction} onChange={setDirection} />
        </GraphToolbar>
        <div ref={frame} className={classes["frame"]}>
          {layout === null ? (
            <div className={classes["laying"]}>
              <Loader size="sm" role="status" aria-label="Loading the graph" />
            </div>
          ) : (
            <ReactFlow
              nodes={layout.nodes}
              edges={layout.edges}
              nodeTypes={NODE_TYPES}
              edgeTypes={EDGE_TYPES}
              colorMode={scheme}
              onlyRenderVisibleElements={layout.nodes.length > DRAW_ALL_UP_TO}
              nodesDraggable={false}
              nodesConnectable={false}
              nodesFocusable={false}
              edgesFocusable={false}
              elementsSelectable={false}
              deleteKeyCode={null}
              disableKeyboardA11y
              minZoom={0.03}
              maxZoom={2}
              onPaneClick={() => onSelect?.(null)}
              proOptions={{ hideAttribution: true }}
            >
              <Background />
              <GraphMinimap layout={layout.found} />
              <ViewportControl layout={layout.found} chosen={following} begin={begin} opened={opened} />
            </ReactFlow>
          )}
        </div>
      </GraphContext.Provider>
    </div>
  );
}

/** Scrolls to a node that gets the keyboard focus, but not to one that was clicked. */
function bringFocused(element: HTMLElement, bring: (node: string) => void): void {
  const node = element.closest<HTMLElement>(".react-flow__node")?.dataset["id"];
  if (node !== undefined && element.matches(":focus-visible")) bring(node);
}

/** Stable while the graph is shown, so that new callback functions do not rerender the nodes. */
function useActsOf(live: Live, onSelect: StepGraphProps["onSelect"], onOpen: StepGraphProps["onOpen"]): GraphActions {
  const present = useRef({ onSelect, onOpen });
  useLayoutEffect(() => {
    present.current = { onSelect, onOpen };
  });
  return useMemo(
    () => ({
      live,
      select: (id) => {
        live.picked = id;
        present.current.onSelect?.(id);
      },
      open: (id) => present.current.onOpen?.(id),
    }),
    [live],
  );
}

function nodesOf(graph: Graph, insides: ReadonlyMap<string, Inside>, layout: Layout, opens: boolean): Node[] {
  const across = layout.direction === "RIGHT";
  const nodes: Node[] = [];
  const add = (id: string, type: string, data: Record<string, unknown>) => {
    const { x, y, width, height } = layout.rects.get(id) ?? { x: 0, y: 0, width: 1, height: 1 };
    nodes.push({
      id,
      type,
      data,
      position: { x, y },
      width,
      height,
      zIndex: 2 * (depthOf(id) + (isSlot(id) ? 1 : 0)),
      style: TOUCHABLE,
    });
  };
  const addAll = ({ steps }: Graph, within: string | null) => {
    for (const step of steps) {
      const id = within === null ? step.name : childId(within, step.name);
      const inside = insides.get(id);
      const shown = inside !== undefined && "items" in inside ? inside.items : null;
      // Items of child runs are shown on the child run's page.
      const mayOpen = opens && (within === null || step.for_each === null);
      add(id, "step", { step, across, opens: mayOpen, open: inside !== undefined, shown });
      if (inside === undefined) continue;
      if ("graph" in inside) addAll(inside.graph, id);
      else for (let slot = 0; slot < inside.items; slot++) add(slotId(id, slot), "item", {});
    }
  };
  addAll(graph, null);
  return nodes;
}

function edgesOf(graph: Graph, insides: ReadonlyMap<string, Inside>, layout: Layout): RouteEdgeType[] {
  const reasons = new Map(graph.edges.map(({ from, to, why }) => [`${from}>${to}`, why]));
  for (const [node, inside] of insides) {
    if (!("graph" in inside)) continue;
    for (const { from, to, why } of inside.graph.edges) reasons.set(`${childId(node, from)}>${childId(node, to)}`, why);
  }
  return [...layout.routes].map(([id, route]): RouteEdgeType => {
    const [source, target] = id.split(">") as [string, string];
    return {
      id,
      source,
      target,
      type: "route",
      markerEnd: ARROW,
      // Above their group, below its steps.
      zIndex: Math.max(0, 2 * depthOf(source) - 1),
      data: { route, onError: reasons.get(id) === "on_error" },
    };
  });
}
