/**
 * The graph of a workflow, plain or with a run's state in it.
 *
 * What is drawn changes only with the layout: how steps stand reaches them by a way of their own (`live.ts`). Above 150
 * steps only what can be seen is drawn.
 */

import "@xyflow/react/dist/style.css";

import { Loader, useComputedColorScheme } from "@mantine/core";
import { Background, MarkerType, type Node, ReactFlow, ReactFlowProvider } from "@xyflow/react";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import type { StepModel } from "../runs/model.ts";
import { DirectionSwitch, useDirection } from "./DirectionSwitch.tsx";
import { ViewportControl } from "./ViewportControl.tsx";
import classes from "./graph.module.css";
import { GraphMap } from "./GraphMap.tsx";
import { GraphTools } from "./GraphTools.tsx";
import { ItemNode } from "./ItemNode.tsx";
import { type Direction, type Layout, layOut } from "./layout.ts";
import { type Acts, GraphContext, Live } from "./live.ts";
import { childId, depthOf, type Graph, type Inside, isSlot, planOf, slotId } from "./plan.ts";
import { RouteEdge, type RouteEdgeType } from "./RouteEdge.tsx";
import { StepNode } from "./StepNode.tsx";
import { useArrows } from "./useArrows.ts";
import { useRevealNode } from "./useRevealNode.ts";

const DRAW_ALL_UP_TO = 150;
const NODE_TYPES = { step: StepNode, item: ItemNode };
const EDGE_TYPES = { route: RouteEdge };
const ARROW = { type: MarkerType.ArrowClosed, width: 16, height: 16 } as const;
// What nobody drags or selects gets no clicks from React Flow; ours have buttons of their own.
const TOUCHABLE = { pointerEvents: "all" } as const;
const NOTHING_INSIDE: ReadonlyMap<string, Inside> = new Map();

export interface StepGraphProps {
  readonly graph: Graph;
  /** By the ids of nodes: names of steps, `plan.slotId`, `plan.childId`. Left out: this is a workflow, not a run. */
  readonly states?: ReadonlyMap<string, StepModel> | null;
  /** The run has ended: what has not begun never will. */
  readonly over?: boolean;
  readonly insides?: ReadonlyMap<string, Inside>;
  /** A node. */
  readonly selected?: string | null;
  /** The name under which it was chosen, where that is another. */
  readonly chosen?: string | null;
  readonly onSelect?: (id: string | null) => void;
  /** Shows or hides what is inside of a step; left out: nothing can be opened. */
  readonly onOpen?: (id: string) => void;
  /** What was opened or closed last. */
  readonly opened?: string | null;
  /** Where to begin if nothing is selected and not all can be shown; left out: at the first step. */
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
  // What fits best is found once: a graph does not turn because something in it is opened.
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
  const onKeyDown = useArrows(live, layout?.found ?? null, bring);
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
        <GraphTools layout={layout?.found ?? null}>
          <DirectionSwitch value={direction} onChange={setDirection} />
        </GraphTools>
        <div ref={frame} className={classes["frame"]}>
          {layout === null ? (
            <div className={classes["laying"]}>
              <Loader size="sm" role="status" aria-label="The graph is being laid out" />
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
              <GraphMap layout={layout.found} />
              <ViewportControl layout={layout.found} chosen={following} begin={begin} opened={opened} />
            </ReactFlow>
          )}
        </div>
      </GraphContext.Provider>
    </div>
  );
}

/** What the keyboard comes to is seen. What a pointer presses stays under it. */
function bringFocused(element: HTMLElement, bring: (node: string) => void): void {
  const node = element.closest<HTMLElement>(".react-flow__node")?.dataset["id"];
  if (node !== undefined && element.matches(":focus-visible")) bring(node);
}

/** The same for as long as the graph is shown: what is drawn does not change because a function was made anew. */
function useActsOf(live: Live, onSelect: StepGraphProps["onSelect"], onOpen: StepGraphProps["onOpen"]): Acts {
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
    const { x, y, width, height } = layout.places.get(id) ?? { x: 0, y: 0, width: 1, height: 1 };
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
      // The items of another run are on that run's page.
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
  const whys = new Map(graph.edges.map(({ from, to, why }) => [`${from}>${to}`, why]));
  for (const [node, inside] of insides) {
    if (!("graph" in inside)) continue;
    for (const { from, to, why } of inside.graph.edges) whys.set(`${childId(node, from)}>${childId(node, to)}`, why);
  }
  return [...layout.routes].map(([id, route]): RouteEdgeType => {
    const [source, target] = id.split(">") as [string, string];
    return {
      id,
      source,
      target,
      type: "route",
      markerEnd: ARROW,
      // Above the group that they are in, below its steps.
      zIndex: Math.max(0, 2 * depthOf(source) - 1),
      data: { route, onError: whys.get(id) === "on_error" },
    };
  });
}
