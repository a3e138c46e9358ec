/**
 * What moves in a graph: how its steps stand, which one is chosen, and where the keyboard is.
 *
 * Each step and each edge listens for its own part, so that the graph itself, its places and its routes, is drawn once:
 * a run of hundreds of steps moves at the speed of the screen.
 */

import { createContext, useCallback, useContext, useSyncExternalStore } from "react";

import type { StepModel, StepStatus } from "../runs/model.ts";

type Listener = () => void;

export class Live {
  /** Null: a workflow, not a run. */
  states: ReadonlyMap<string, StepModel> | null = null;
  /** Nothing in it moves any more. */
  over = false;
  selected: string | null = null;
  /** What was chosen last in the graph itself: whoever did that sees it. */
  picked: string | null = null;
  /** The step that Tab leads to; arrows lead on from there. */
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

export interface Acts {
  readonly live: Live;
  readonly select: (id: string) => void;
  /** Shows or hides what is inside of a step. */
  readonly open: (id: string) => void;
}

export const GraphContext = createContext<Acts | null>(null);

export function useActs(): Acts {
  const acts = useContext(GraphContext);
  if (acts === null) throw new Error("Only inside of a graph");
  return acts;
}

function useLive<Value>(id: string, read: (live: Live) => Value): Value {
  const { live } = useActs();
  const subscribe = useCallback((listener: Listener) => live.listen(id, listener), [live, id]);
  return useSyncExternalStore(subscribe, () => read(live));
}

/** Undefined: nothing has happened to it yet; null: this is no run. */
export function useStepState(id: string): StepModel | undefined | null {
  return useLive(id, (live) => (live.states === null ? null : live.states.get(id)));
}

/** Null: this is no run. What has not begun when a run ends never will. */
export function useStatus(id: string): StepStatus | null {
  return useLive(id, (live) => {
    if (live.states === null) return null;
    const status = live.states.get(id)?.status ?? "PENDING";
    return status === "PENDING" && live.over ? "CANCELLED" : status;
  });
}

/** Whether a run comes, or may come, by this step; a bit alone, so that an edge is drawn again only when it turns. */
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
