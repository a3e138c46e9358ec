/** One wish for many runs: sent one by one, a few at a time, and told how each went. */

import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";

import { api, body } from "../../api/client.ts";
import { isFinal } from "../model.ts";
import type { Run } from "./useRuns.ts";

export type BulkWish = "cancel" | "retry" | "restart";

// Enough to be quick; the server has others to answer.
const AT_ONCE = 4;

export interface Failure {
  readonly run: Run;
  readonly error: unknown;
}

export interface Progress {
  readonly state: "ready" | "going" | "stopped" | "over";
  readonly done: number;
  readonly failures: readonly Failure[];
}

/** The runs that the wish makes sense for; the others are left alone. */
export function meant(wish: BulkWish, runs: Iterable<Run>): Run[] {
  return [...runs].filter((run) => {
    if (wish === "cancel") return !isFinal(run.status) && run.cancel_requested_at == null;
    if (wish === "retry") return run.status === "FAILED" || run.status === "CANCELLED";
    return isFinal(run.status);
  });
}

export function useBulk() {
  const queries = useQueryClient();
  const [progress, setProgress] = useState<Progress>({ state: "ready", done: 0, failures: [] });
  const stopped = useRef(false);
  const go = async (wish: BulkWish, runs: readonly Run[]) => {
    stopped.current = false;
    const waiting = [...runs];
    const failures: Failure[] = [];
    let done = 0;
    const tell = (state: Progress["state"]) => setProgress({ state, done, failures: [...failures] });
    tell("going");
    const work = async () => {
      for (let run = waiting.shift(); run !== undefined && !stopped.current; run = waiting.shift()) {
        try {
          await send(wish, run.id);
        } catch (error) {
          failures.push({ run, error });
        }
        done += 1;
        tell("going");
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    tell(stopped.current && done < runs.length ? "stopped" : "over");
    await queries.invalidateQueries({ queryKey: ["runs"] });
  };
  return {
    progress,
    go,
    /** Those under way are answered; no other is sent. */
    stop: () => {
      stopped.current = true;
    },
  };
}

function send(wish: BulkWish, run: string): Promise<unknown> {
  const params = { path: { run } };
  if (wish === "cancel") return body(api.POST("/api/v1/runs/{run}/cancel", { params }));
  return body(api.POST("/api/v1/runs/{run}/retry", { params, body: { from_start: wish === "restart" } }));
}
