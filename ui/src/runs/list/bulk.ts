/** One wish for many runs: sent one by one, a few at a time, and told how each went. */

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { api, body } from "../../api/client.ts";
import { drawnKey } from "../../api/idempotency.ts";
import { Problem } from "../../api/problem.ts";
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
  readonly of: number;
  readonly done: number;
  readonly failures: readonly Failure[];
  /** Those that were not asked, since somebody has stopped it. */
  readonly unasked: readonly Run[];
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
  const [progress, setProgress] = useState<Progress>({ state: "ready", of: 0, done: 0, failures: [], unasked: [] });
  const stopped = useRef(false);
  const stop = () => {
    stopped.current = true;
  };
  // Who leaves the page sees no more how it goes.
  useEffect(() => stop, []);
  const go = async (wish: BulkWish, runs: readonly Run[]) => {
    stopped.current = false;
    const waiting = [...runs];
    const failures: Failure[] = [];
    let done = 0;
    const tell = (state: Progress["state"]) =>
      setProgress({ state, of: runs.length, done, failures: [...failures], unasked: [...waiting] });
    tell("going");
    const work = async () => {
      while (!stopped.current) {
        const run = waiting.shift();
        if (run === undefined) return;
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
    tell(waiting.length > 0 ? "stopped" : "over");
    await queries.invalidateQueries({ queryKey: ["runs"] });
  };
  return {
    progress,
    go,
    /** Those under way are answered; no other is sent. */
    stop,
  };
}

/** Whether it may have happened all the same. */
export function isUnclear(error: unknown): boolean {
  return !(error instanceof Problem) || error.status === 0 || error.status >= 500;
}

/** The keys of retries without an answer, by run: asked for again, now or later, such a retry does not begin twice. */
const unanswered = new Map<string, string>();

async function send(wish: BulkWish, run: string): Promise<void> {
  const path = { run };
  if (wish === "cancel") {
    await body(api.POST("/api/v1/runs/{run}/cancel", { params: { path } }));
    return;
  }
  const key = unanswered.get(run) ?? drawnKey();
  unanswered.set(run, key);
  const header = { "Idempotency-Key": key };
  try {
    await body(
      api.POST("/api/v1/runs/{run}/retry", { params: { path, header }, body: { from_start: wish === "restart" } }),
    );
    unanswered.delete(run);
  } catch (error) {
    if (!isUnclear(error)) unanswered.delete(run);
    throw error;
  }
}
