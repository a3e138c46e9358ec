/**
 * A run's model that moves with the run's history.
 *
 * It has two speeds: whoever shows single steps listens to the model itself and hears of it once a frame; all else
 * takes it calmly, a few times a second, and at once when the run itself turns. A busy run has hundreds of events a
 * second, and buttons and tables that were drawn for each would slow the graph down.
 */

import { useCallback, useEffect, useState, useSyncExternalStore } from "react";

import type { Problem } from "../api/problem.ts";
import { type Connection, follow, type RunEvent } from "../api/stream.ts";
import { apply, NOTHING, type RunModel } from "./model.ts";

const UNSEEN_MS = 1_000;
const CALM_MS = 250;
// How many events a frame may bring: as many as can be drawn in the time of one or two.
const SLICE = { first: 16, least: 6, most: 64 };
const SLOW_MS = 26;
const BACKLOG = 1_000;

export class LiveModel {
  model = NOTHING;
  /** The model of a moment ago. */
  calm = NOTHING;
  private readonly listeners = new Set<() => void>();
  private timer = 0;

  take(events: readonly RunEvent[]): void {
    this.model = apply(this.model, events);
    if (this.model.status !== this.calm.status) this.calm = this.model;
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

/** Follows the run for as long as it is shown. */
export function useFollowed(run: string): Followed {
  const [live] = useState(() => new LiveModel());
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
      // A burst is shown over some frames; a history that is long already, or a page that nobody sees, at once.
      const some = at === 0 || waiting.length > BACKLOG ? waiting.length : slice;
      const events = waiting.slice(0, some);
      waiting = waiting.slice(some);
      if (waiting.length > 0) frame = requestAnimationFrame(draw);
      live.take(events);
    };
    void follow(
      run,
      live.model.seq,
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
  return { live, ...heard };
}

/** Once a frame. */
export function useModel(live: LiveModel): RunModel {
  const listen = useCallback((listener: () => void) => live.listen(listener), [live]);
  return useSyncExternalStore(listen, () => live.model);
}

/** A few times a second. */
export function useCalmModel(live: LiveModel): RunModel {
  const listen = useCallback((listener: () => void) => live.listen(listener), [live]);
  return useSyncExternalStore(listen, () => live.calm);
}
