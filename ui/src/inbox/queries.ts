/** The queries and mutations of the inbox. */

import { queryOptions, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, body } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import { isSchema, type Json, type Schema } from "../forms/schema.ts";

export type InboxItem = components["schemas"]["InboxItem"];
export type Kind = InboxItem["kind"];
export type Outcome = components["schemas"]["ResolveRequest"]["outcome"];
/** The answer to a human task. */
export interface TaskAnswer {
  readonly answer?: string;
  readonly comment?: string;
  readonly data?: Json;
}
/** The reply to an agent, or the answer to a human task. */
export type Reply = { readonly text: string } | { readonly data: Json } | TaskAnswer;

// Above this, the count is shown as "99+".
export const MOST_COUNTED = 99;
// Notifications trigger refreshes; this interval covers lost notifications.
const REFRESH_MS = 20_000;

export function useInboxItemCount() {
  return useQuery({
    queryKey: ["inbox", "count"],
    queryFn: () => body(api.GET("/api/v1/inbox", { params: { query: { limit: MOST_COUNTED + 1 } } })),
    select: (page) => page.items.length,
    refetchInterval: REFRESH_MS,
  });
}

/** Whose items are listed. */
export const WHOSE = ["mine", "unassigned", "overdue"] as const;
export type Whose = (typeof WHOSE)[number];

export function useInboxItems(kind: Kind | undefined, whose: Whose | undefined) {
  return useInfiniteQuery({
    queryKey: ["inbox", "list", kind ?? null, whose ?? null],
    queryFn: ({ pageParam }) =>
      body(
        api.GET("/api/v1/inbox", {
          params: {
            query: {
              limit: 50,
              ...(kind === undefined ? {} : { kind }),
              ...(whose === undefined ? {} : { [whose]: true }),
              ...(pageParam === null ? {} : { cursor: pageParam }),
            },
          },
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: REFRESH_MS,
  });
}

/** `item`: its id, or `RUN.STEP` for the current question of a step. */
export function itemQuery(item: string) {
  return queryOptions({
    queryKey: ["inbox", "item", item],
    queryFn: () => body(api.GET("/api/v1/inbox/{item}", { params: { path: { item } } })),
    refetchInterval: REFRESH_MS,
  });
}

export function commentsQuery(item: string) {
  return queryOptions({
    queryKey: ["inbox", "comments", item],
    queryFn: () => body(api.GET("/api/v1/inbox/{item}/comments", { params: { path: { item } } })),
    select: (page) => page.items,
    refetchInterval: REFRESH_MS,
  });
}

export function useComment(item: string) {
  return useMutation({
    networkMode: "always",
    mutationFn: (text: string) =>
      body(api.POST("/api/v1/inbox/{item}/comments", { params: { path: { item } }, body: { text } })),
    onSettled: useForgetting(),
  });
}

export function useClaim(item: InboxItem) {
  const params = { path: { item: item.id } };
  return useMutation({
    networkMode: "always",
    mutationFn: (action: "claim" | "release") =>
      body(
        action === "claim"
          ? api.POST("/api/v1/inbox/{item}/claim", { params })
          : api.POST("/api/v1/inbox/{item}/release", { params }),
      ),
    onSettled: useForgetting(),
  });
}

/** Uploads a file for the answer to an item; the reference to it for the answer's data. */
export async function uploadFile(item: string, file: File): Promise<Json> {
  const uploaded = await body(
    api.POST("/api/v1/inbox/{item}/files", {
      params: { path: { item }, query: { name: file.name } },
      headers: { "Content-Type": file.type === "" ? "application/octet-stream" : file.type },
      body: file as unknown as string,
      bodySerializer: (content: unknown) => content as Blob,
    }),
  );
  return uploaded;
}

function useForgetting() {
  const queries = useQueryClient();
  return () => void queries.invalidateQueries({ queryKey: ["inbox"] });
}

export function useReply(item: InboxItem) {
  return useMutation({
    networkMode: "always",
    mutationFn: (reply: Reply) =>
      body(
        api.POST("/api/v1/runs/{run}/steps/{step}/reply", {
          params: { path: { run: item.run_id, step: item.step } },
          // Names the question, so that the reply is not used for a later one.
          body: { ...reply, item: item.id },
        }),
      ),
    onSettled: useForgetting(),
  });
}

export function useResolve(item: InboxItem) {
  return useMutation({
    networkMode: "always",
    mutationFn: ({ outcome, output }: { outcome: Outcome; output: Json | undefined }) =>
      body(
        api.POST("/api/v1/runs/{run}/steps/{step}/resolve", {
          params: { path: { run: item.run_id, step: item.step } },
          body: { outcome, output: output ?? null },
        }),
      ),
    onSettled: useForgetting(),
  });
}

// The fields in which agents send the schema of the expected reply.
const SCHEMA_KEYS = ["schema", "form", "requestedSchema", "input_schema", "inputSchema", "response_schema"] as const;

/** The JSON Schema of the reply, if the question has one. */
export function schemaOf(data: unknown): Schema | null {
  if (!isSchema(data)) return null;
  const candidates = [data, ...SCHEMA_KEYS.map((name) => data[name])];
  return (
    candidates.find(
      (each): each is Schema => isSchema(each) && each["type"] === "object" && isSchema(each["properties"]),
    ) ?? null
  );
}
