/** The wishes that a run can be sent, and when its state allows them. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";

import { api, body } from "../../api/client.ts";
import { StartKey } from "../../api/idempotency.ts";
import { NoAnswer, Problem } from "../../api/problem.ts";
import type { components } from "../../api/schema.d.ts";
import { toast } from "../../app/toasts.ts";
import { isFinal, type RunModel } from "../model.ts";

export type RunCommand = "cancel" | "pause" | "resume";
export type RetryRequest = components["schemas"]["RetryRequest"];

const DONE: Readonly<Record<RunCommand, string>> = {
  cancel: "The run is being cancelled.",
  pause: "The run is paused: calls in flight end, no other starts.",
  resume: "The run goes on.",
};

/** Why the run cannot take the command now; null: it can. */
export function refusal(command: RunCommand | "retry", model: RunModel): string | null {
  const ended = isFinal(model.status);
  const word = model.status.toLowerCase();
  switch (command) {
    case "cancel":
      if (ended) return `The run has ended: it is ${word}.`;
      return model.cancelRequestedAt === null ? null : "The run is being cancelled.";
    case "pause":
      if (ended) return `The run has ended: it is ${word}.`;
      return model.cancelRequestedAt === null ? null : "The run is being cancelled.";
    case "resume":
      return model.status === "PAUSED" ? null : "The run is not paused.";
    case "retry":
      return ended ? null : "Only a run that has ended can be retried. Wait for it, or cancel it.";
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

export function wordsOf(error: unknown): string {
  if (error instanceof NoAnswer) return `${error.title}. ${error.message}`;
  if (error instanceof Problem) return `${error.message} ${error.fix}`.trim();
  return error instanceof Error ? error.message : String(error);
}
