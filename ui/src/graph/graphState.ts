/**
 * The changing state of a graph: the status of its steps, the selection, and the keyboard focus.
 *
 * Each step and edge subscribes to its own part, so that the graph itself is rendered once and runs with hundreds of
 * steps update smoothly.
 */

import { createContext, useCallback, useContext, useSyncExternalStore } from "react";

import type { StepModel, StepStatus } from "../runs/model.ts";

type Listener = () => void;

export class Live {
  /** Null for a workflow without a run. */
  states: ReadonlyMap<string, StepModel> | null = null;
  /** The run has ended. */
  over = false;
  selected: string | null = null;
  /** The last selection made in the graph itself, which needs no scrolling. */
  picked: string | null = null;
  /** The step that Tab focuses; arrow keys move on from there. */
  stop: string | null = null;
  private readonly listeners = new Map<string, Set<Listener>>();

  show(states: ReadonlyMap<string, StepModel> | null, over: boolean, selected: string | null): void {
    const before = this.states;
    const ended = over !== this.over;
    this.over = over;
    const stop = selected ?? this.stop;
    const changed = [this.selected, selected, this.stop, stop];
    this.states = states;
    this.selected = selected;
    this.stop = stop;
    for (const [id, listeners] of this.listeners) {
      if (ended || before?.get(id) !== states?.get(id) || changed.includes(id)) for (const each of listeners) each();
    }
  }

  moveStop(id: string): void {
    const before = this.stop;
    this.stop = id;
    for (const name of [before, id]) {
      for (const each of (name === null ? undefined : this.listeners.get(name)) ?? []) each();
    }
  }

  listen(id: string, listener: Listener): () => void {
    const listeners = this.listeners.get(id) ?? new Set();
    this.listeners.set(id, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.listeners.delete(id);
    };
  }
}

export interface GraphActions {
  readonly live: Live;
  readonly select: (id: string) => void;
  /** Expands or collapses a step. */
  readonly open: (id: string) => void;
}

export const GraphContext = createContext<GraphActions | null>(null);

export function useGraphActions(): GraphActions {
  const acts = useContext(GraphContext);
  if (acts === null) throw new Error("Must be used inside of a graph");
  return acts;
}

function useLive<Value>(id: string, read: (live: Live) => Value): Value {
  const { live } = useGraphActions();
  const subscribe = useCallback((listener: Listener) => live.listen(id, listener), [live, id]);
  return useSyncExternalStore(subscribe, () => read(live));
}

/** Undefined: the step has not started; null: there is no run. */
export function useStepState(id: string): StepModel | undefined | null {
  return useLive(id, (live) => (live.states === null ? null : live.states.get(id)));
}

/** Null if there is no run. Steps that are pending when the run ends count as cancelled. */
export function useStatus(id: string): StepStatus | null {
  return useLive(id, (live) => {
    if (live.states === null) return null;
    const status = live.states.get(id)?.status ?? "PENDING";
    return status === "PENDING" && live.over ? "CANCELLED" : status;
  });
}

/** Whether the run passes or may pass this step. A boolean, so that an edge rerenders only when it changes. */
export function useIsOnTheWay(id: string): boolean {
  return useLive(id, (live) => {
    const status = live.states?.get(id)?.status;
    return status !== "SKIPPED" && status !== "CANCELLED";
  });
}

export function useIsSelected(id: string): boolean {
  return useLive(id, (live) => live.selected === id);
}

export function useIsStop(id: string): boolean {
  return useLive(id, (live) => live.stop === id);
}
