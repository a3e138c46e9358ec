/** A run's model that moves with the run's history. */

import { useEffect, useState } from "react";

import type { Problem } from "../api/problem.ts";
import { type Connection, follow, type RunEvent } from "../api/stream.ts";
import { apply, NOTHING, type RunModel } from "./model.ts";

export interface Followed {
  readonly model: RunModel;
  readonly connection: Connection;
  readonly problem: Problem | null;
}

const UNSEEN_MS = 1_000;
const BEGINNING: Followed = { model: NOTHING, connection: "connecting", problem: null };

export function useRunModel(run: string): Followed {
  const [followed, setFollowed] = useState<Followed>(BEGINNING);
  useEffect(() => {
    const leaving = new AbortController();
    let waiting: RunEvent[] = [];
    let frame = 0;
    let timer = 0;
    const cancel = () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      frame = timer = 0;
    };
    setFollowed(BEGINNING);
    const draw = () => {
      cancel();
      const events = waiting;
      waiting = [];
      setFollowed((before) => ({ ...before, model: apply(before.model, events) }));
    };
    void follow(
      run,
      0,
      {
        onEvents(events) {
          waiting = waiting.concat(events);
          // A busy run brings hundreds of events a second; the page is drawn once a frame. One that nobody looks at
          // has no frames, and its title still tells how the run stands.
          if (frame === 0 && timer === 0) {
            if (document.hidden) timer = window.setTimeout(draw, UNSEEN_MS);
            else frame = requestAnimationFrame(draw);
          }
        },
        onConnection(connection, problem) {
          setFollowed((before) => ({ ...before, connection, problem }));
        },
      },
      leaving.signal,
    );
    return () => {
      leaving.abort();
      cancel();
    };
  }, [run]);
  return followed;
}
