/**
 * A run's model that moves with the run's history.
 *
 * It begins as REST has told it, and stays so until the history has come as far: what was long ago is never shown as
 * the present. From there on the history alone tells.
 *
 * It has two speeds: whoever shows single steps listens to the model itself and hears of it once a frame; all else
 * takes it calmly, a few times a second, and at once when the run itself turns. A busy run has hundreds of events a
 * second, and buttons and tables that were drawn for each would slow the graph down.
 */

import { useCallback, useEffect, useState, useSyncExternalStore } from "react";

import type { Problem } from "../api/problem.ts";
import type { components } from "../api/schema.d.ts";
import { type Connection, follow, type RunEvent } from "../api/stream.ts";
import { recordModel } from "./recordModel.ts";
import { apply, NOTHING, type RunModel } from "./model.ts";

type Run = components["schemas"]["Run"];

const UNSEEN_MS = 1_000;
const CALM_MS = 250;
// How many events a frame may bring: as many as can be drawn in the time of one or two.
const SLICE = { first: 16, least: 6, most: 64 };
const SLOW_MS = 26;
const BACKLOG = 1_000;

export class LiveModel {
  model: RunModel;
  /** The model of a moment ago. */
  calm: RunModel;
  private told = NOTHING;
  /** The event that the history has to come to. */
  private until = Infinity;
  private readonly listeners = new Set<() => void>();
  private timer = 0;

  constructor(known: RunModel) {
    this.model = this.calm = known;
  }

  /** The last event that has come. */
  get seq(): number {
    return this.told.seq;
  }

  get isBehind(): boolean {
    return this.told.seq < this.until;
  }

  /** `isLatest`: it was not kept from an earlier visit. */
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

/** Follows the run for as long as it is shown. `isLatest`: what is known of it was not kept from an earlier visit. */
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
      // A burst is shown over some frames; what is no news, a long backlog, or a page that nobody sees, at once.
      const some = at === 0 || live.isBehind || waiting.length > BACKLOG ? waiting.length : slice;
      const events = waiting.slice(0, some);
      waiting = waiting.slice(some);
      if (waiting.length > 0) frame = requestAnimationFrame(draw);
      live.take(events);
    };
    void follow(
      run,
      live.seq,
      {
        onEvents(events) {
          waiting = waiting.concat(events);
          if (frame !== 0 || timer !== 0) return;
          // A page that nobody looks at has no frames, and its title still tells how the run stands.
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
  // Who has not heard all of it yet is not there yet, though the line is open or was closed already.
  const isThere = !isBehind || heard.connection === "lost";
  return { live, ...heard, connection: isThere ? heard.connection : "connecting" };
}

function useListen(live: LiveModel): (listener: () => void) => () => void {
  return useCallback((listener: () => void) => live.listen(listener), [live]);
}

/** Once a frame. */
export function useModel(live: LiveModel): RunModel {
  return useSyncExternalStore(useListen(live), () => live.model);
}

/** A few times a second. */
export function useCalmModel(live: LiveModel): RunModel {
  return useSyncExternalStore(useListen(live), () => live.calm);
}
