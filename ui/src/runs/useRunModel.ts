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

const BEGINNING: Followed = { model: NOTHING, connection: "connecting", problem: null };

export function useRunModel(run: string): Followed {
  const [followed, setFollowed] = useState<Followed>(BEGINNING);
  useEffect(() => {
    const leaving = new AbortController();
    let waiting: RunEvent[] = [];
    let frame = 0;
    setFollowed(BEGINNING);
    // A busy run brings hundreds of events a second; the page is drawn once a frame.
    const draw = () => {
      frame = 0;
      const events = waiting;
      waiting = [];
      setFollowed((before) => ({ ...before, model: apply(before.model, events) }));
    };
    void follow(
      run,
      0,
      {
        onEvents(events) {
          waiting.push(...events);
          frame ||= requestAnimationFrame(draw);
        },
        onConnection(connection, problem) {
          setFollowed((before) => ({ ...before, connection, problem }));
        },
      },
      leaving.signal,
    );
    return () => {
      leaving.abort();
      cancelAnimationFrame(frame);
    };
  }, [run]);
  return followed;
}
