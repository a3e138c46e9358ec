/** Sends a command to many runs, a few at a time, and collects the results. */

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { api, body } from "../../api/client.ts";
import { drawnKey } from "../../api/idempotency.ts";
import { Problem } from "../../api/problem.ts";
import { isFinal } from "../model.ts";
import type { Run } from "./useRuns.ts";

export type BulkAction = "cancel" | "retry" | "restart";

// Limits the load on the server.
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
  /** The runs that were not processed because the user stopped. */
  readonly unasked: readonly Run[];
}

/** The runs that the command applies to. */
export function meant(wish: BulkAction, runs: Iterable<Run>): Run[] {
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
  // Stop updating the state after the page is left.
  useEffect(() => stop, []);
  const go = async (wish: BulkAction, runs: readonly Run[]) => {
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
    /** Waits for running requests and sends no others. */
    stop,
  };
}

/** Whether the command may have been executed despite the error. */
export function isUnclear(error: unknown): boolean {
  return !(error instanceof Problem) || error.status === 0 || error.status >= 500;
}

/** The idempotency keys of retries without a response, by run, so that a repetition does not start a second run. */
const unanswered = new Map<string, string>();

async function send(wish: BulkAction, run: string): Promise<void> {
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
