/** The commands for a run, and the states that allow them. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";

import { api, body } from "../../api/client.ts";
import { StartKey } from "../../api/idempotency.ts";
import { NoResponseError, Problem } from "../../api/problem.ts";
import type { components } from "../../api/schema.d.ts";
import { toast } from "../../app/toasts.ts";
import { isFinal, type RunModel } from "../model.ts";

export type RunCommand = "cancel" | "pause" | "resume";
export type RetryRequest = components["schemas"]["RetryRequest"];

const DONE: Readonly<Record<RunCommand, string>> = {
  cancel: "The run is being cancelled.",
  pause: "The run is paused. Calls in progress complete, and no new calls start.",
  resume: "The run is resumed.",
};

/** Why the command is not available now, or null if it is. */
export function refusal(command: RunCommand | "retry", model: RunModel): string | null {
  const ended = isFinal(model.status);
  const word = model.status.toLowerCase();
  switch (command) {
    case "cancel":
      if (ended) return `The run has ended (${word}).`;
      if (model.compensation === "RUNNING") return "The work of the run is being undone.";
      return model.cancelRequestedAt === null ? null : "The run is being cancelled.";
    case "pause":
      if (ended) return `The run has ended (${word}).`;
      if (model.status === "COMPENSATING") return null;
      return model.cancelRequestedAt === null ? null : "The run is being cancelled.";
    case "resume":
      return model.status === "PAUSED" ? null : "The run is not paused.";
    case "retry":
      return ended ? null : "Only an ended run can be retried. Wait until it ends, or cancel it.";
  }
}

export function useRunCommands(run: string) {
  const queries = useQueryClient();
  return useMutation({
    networkMode: "always",
    mutationFn: (command: RunCommand) => {
      const params = { params: { path: { run } } };
      if (command === "cancel") return body(api.POST("/api/v1/runs/{run}/cancel", params));
      if (command === "pause") return body(api.POST("/api/v1/runs/{run}/pause", params));
      return body(api.POST("/api/v1/runs/{run}/resume", params));
    },
    onSuccess: (_, command) => toast("done", DONE[command]),
    onSettled: () => void queries.invalidateQueries({ queryKey: ["runs"] }),
  });
}

export function useRetry(run: string) {
  const queries = useQueryClient();
  const keys = useRef(new StartKey());
  return useMutation({
    networkMode: "always",
    mutationFn: (request: RetryRequest) => {
      const header = { "Idempotency-Key": keys.current.of(JSON.stringify(request)) };
      return body(api.POST("/api/v1/runs/{run}/retry", { params: { path: { run }, header }, body: request }));
    },
    onSettled: () => void queries.invalidateQueries({ queryKey: ["runs"] }),
  });
}

export function errorMessage(error: unknown): string {
  if (error instanceof NoResponseError) return `${error.title}. ${error.message}`;
  if (error instanceof Problem) return `${error.message} ${error.fix}`.trim();
  return error instanceof Error ? error.message : String(error);
}
