/**
 * The live model of a run.
 *
 * It starts with the REST record and keeps it until the events have caught up, so that old states are never shown as
 * current. From then on only the events count.
 *
 * It updates at two rates: components of single steps once per frame, everything else a few times a second and
 * immediately when the status of the run changes. A busy run has hundreds of events per second, and rendering buttons and
 * tables for each would slow down the graph.
 */

import { useCallback, useEffect, useState, useSyncExternalStore } from "react";

import type { Problem } from "../api/problem.ts";
import type { components } from "../api/schema.d.ts";
import { type Connection, followRun, type RunEvent } from "../api/eventStream.ts";
import { recordModel } from "./recordModel.ts";
import { apply, NOTHING, type RunModel } from "./model.ts";

type Run = components["schemas"]["Run"];

const UNSEEN_MS = 1_000;
const CALM_MS = 250;
// The maximum number of events per frame.
const SLICE = { first: 16, least: 6, most: 64 };
const SLOW_MS = 26;
const BACKLOG = 1_000;

export class LiveModel {
  model: RunModel;
  /** The model at the slower rate. */
  calm: RunModel;
  private told = NOTHING;
  /** The event at which the history has caught up. */
  private until = Infinity;
  private readonly listeners = new Set<() => void>();
  private timer = 0;

  constructor(known: RunModel) {
    this.model = this.calm = known;
  }

  /** The last received event. */
  get seq(): number {
    return this.told.seq;
  }

  get isBehind(): boolean {
    return this.told.seq < this.until;
  }

  /** `isLatest`: the record is fresh and not from the cache. */
  know(known: RunModel, isLatest: boolean): void {
    if (!this.isBehind) return;
    this.until = isLatest ? known.seq : Infinity;
    this.model = this.calm = this.told.seq < this.until ? known : this.told;
    this.tell();
  }

  take(events: readonly RunEvent[]): void {
    const wasBehind = this.isBehind;
    this.told = apply(this.told, events);
    if (this.isBehind) return;
    this.model = this.told;
    if (wasBehind || this.model.status !== this.calm.status) this.calm = this.model;
    else if (this.timer === 0) this.timer = window.setTimeout(() => this.settle(), CALM_MS);
    this.tell();
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private settle(): void {
    this.timer = 0;
    this.calm = this.model;
    this.tell();
  }

  private tell(): void {
    for (const each of this.listeners) each();
  }
}

export interface Followed {
  readonly live: LiveModel;
  readonly connection: Connection;
  readonly problem: Problem | null;
}

/** Follows the run while it is shown. `isLatest`: the record is fresh and not from the cache. */
export function useFollowed(known: Run, isLatest: boolean): Followed {
  const run = known.id;
  const [live] = useState(() => new LiveModel(recordModel(known)));
  useEffect(() => live.know(recordModel(known), isLatest), [live, known, isLatest]);
  const isBehind = useSyncExternalStore(useListen(live), () => live.isBehind);
  const [heard, setHeard] = useState<Omit<Followed, "live">>({ connection: "connecting", problem: null });
  useEffect(() => {
    const leaving = new AbortController();
    let waiting: readonly RunEvent[] = [];
    let frame = 0;
    let timer = 0;
    const cancel = () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      frame = timer = 0;
    };
    let slice = SLICE.first;
    let drawnAt = 0;
    const draw = (at = 0) => {
      cancel();
      slice = Math.round(at - drawnAt > SLOW_MS ? Math.max(SLICE.least, slice / 2) : Math.min(SLICE.most, slice + 4));
      drawnAt = at;
      // A burst is spread over frames; old events, a long backlog, and a hidden page are applied at once.
      const some = at === 0 || live.isBehind || waiting.length > BACKLOG ? waiting.length : slice;
      const events = waiting.slice(0, some);
      waiting = waiting.slice(some);
      if (waiting.length > 0) frame = requestAnimationFrame(draw);
      live.take(events);
    };
    void followRun(
      run,
      live.seq,
      {
        onEvents(events) {
          waiting = waiting.concat(events);
          if (frame !== 0 || timer !== 0) return;
          // A hidden page has no frames, but its title shows the status of the run.
          if (document.hidden) timer = window.setTimeout(() => draw(), UNSEEN_MS);
          else frame = requestAnimationFrame(draw);
        },
        onConnection(connection, problem) {
          setHeard({ connection, problem });
        },
      },
      leaving.signal,
    );
    return () => {
      leaving.abort();
      cancel();
    };
  }, [run, live]);
  // Not live until the history has caught up, even if the stream is open or already closed.
  const isThere = !isBehind || heard.connection === "lost";
  return { live, ...heard, connection: isThere ? heard.connection : "connecting" };
}

function useListen(live: LiveModel): (listener: () => void) => () => void {
  return useCallback((listener: () => void) => live.listen(listener), [live]);
}

/** Updates once per frame. */
export function useModel(live: LiveModel): RunModel {
  return useSyncExternalStore(useListen(live), () => live.model);
}

/** Updates a few times a second. */
export function useThrottledModel(live: LiveModel): RunModel {
  return useSyncExternalStore(useListen(live), () => live.calm);
}
