/** The live graph of a run. Steps with items or a child run can be expanded. */

import { useCallback, useMemo, useRef } from "react";

import { childId, type Graph, type Inside, parentOf, slotId } from "../graph/plan.ts";
import { StepGraph } from "../graph/StepGraph.tsx";
import { visibleItems } from "./visibleItems.ts";
import { freshStep, isFinal, ownerOf, type RunModel, type StepModel } from "./model.ts";
import type { ChildGraph } from "./useChildGraphs.ts";
import { type LiveModel, useModel } from "./useRunModel.ts";

export function RunGraph({
  graph,
  live,
  pictures,
  selected,
  onSelect,
  onOpenRun,
  open,
  onOpen,
  opened,
  begin,
}: {
  graph: Graph;
  live: LiveModel;
  /** The child runs of expanded steps. */
  pictures: ReadonlyMap<string, ChildGraph>;
  selected: string | null;
  onSelect: (step: string | null) => void;
  onOpenRun: (run: string, step: string) => void;
  open: ReadonlySet<string>;
  onOpen: (step: string) => void;
  /** The step that was expanded or collapsed last. */
  opened: string | null;
  /** The step to show first if the graph does not fit. */
  begin: string | null;
}) {
  const model = useModel(live);
  const insides = useInsides(model, open, pictures);
  const shown = useShownItems(model, insides, selected);
  const states = useMemo(() => {
    if (insides.size === 0) return model.steps;
    const all = new Map(model.steps);
    for (const [step, items] of shown) items.forEach((item, slot) => all.set(slotId(step, slot), item));
    for (const [node, { states: inner }] of pictures) {
      for (const [name, state] of inner) all.set(childId(node, name), state);
    }
    return all;
  }, [model.steps, insides, shown, pictures]);
  const select = useCallback(
    (id: string | null) => {
      if (id === null) {
        onSelect(null);
        return;
      }
      const [step, slot] = id.split("#") as [string, string | undefined];
      if (slot !== undefined) {
        onSelect(shown.get(step)?.[Number(slot)]?.name ?? step);
        return;
      }
      const { node, name } = parentOf(id);
      const child = node === null ? undefined : pictures.get(node);
      if (child !== undefined) {
        onOpenRun(child.run, name);
        return;
      }
      onSelect(id);
    },
    [onSelect, onOpenRun, shown, pictures],
  );
  return (
    <StepGraph
      graph={graph}
      states={states}
      over={isFinal(model.status)}
      insides={insides}
      selected={selectedId(selected, shown)}
      chosen={selected}
      onSelect={select}
      onOpen={onOpen}
      opened={opened}
      begin={begin}
    />
  );
}

/** Stable until a step is expanded or collapsed or data arrives, because a new object triggers a new layout. */
function useInsides(
  model: RunModel,
  open: ReadonlySet<string>,
  pictures: ReadonlyMap<string, ChildGraph>,
): ReadonlyMap<string, Inside> {
  const kept = useRef<ReadonlyMap<string, Inside>>(new Map());
  return useMemo(() => {
    const insides = new Map<string, Inside>();
    for (const node of open) {
      const items = model.steps.get(node)?.items ?? 0;
      const child = pictures.get(node);
      if (items > 0) insides.set(node, { items: visibleItems.most(items) });
      else if (child !== undefined) insides.set(node, { graph: child.graph });
    }
    if (!isSame(kept.current, insides)) kept.current = insides;
    return kept.current;
  }, [model.steps, open, pictures]);
}

function isSame(before: ReadonlyMap<string, Inside>, after: ReadonlyMap<string, Inside>): boolean {
  if (before.size !== after.size) return false;
  for (const [step, inside] of after) {
    const known = before.get(step);
    if (known === undefined) return false;
    if (
      "graph" in inside
        ? !("graph" in known) || known.graph !== inside.graph
        : !("items" in known) || known.items !== inside.items
    )
      return false;
  }
  return true;
}

function useShownItems(
  model: RunModel,
  insides: ReadonlyMap<string, Inside>,
  selected: string | null,
): ReadonlyMap<string, readonly StepModel[]> {
  const fresh = useRef(new Map<string, StepModel>());
  return useMemo(() => {
    const shown = new Map<string, readonly StepModel[]>();
    for (const [step, inside] of insides) {
      if (!("items" in inside)) continue;
      const names = visibleItems.names(model, step, selected);
      shown.set(
        step,
        names.map((name) => {
          const known = model.items.get(name);
          if (known !== undefined) return known;
          const made = fresh.current.get(name) ?? freshStep(name);
          fresh.current.set(name, made);
          return made;
        }),
      );
    }
    return shown;
  }, [model, insides, selected]);
}

function selectedId(selected: string | null, shown: ReadonlyMap<string, readonly StepModel[]>): string | null {
  if (selected === null) return null;
  const step = ownerOf(selected);
  const slot = shown.get(step)?.findIndex((item) => item.name === selected) ?? -1;
  return slot < 0 ? step : slotId(step, slot);
}
