/** The queries of published agents and workflows. Cards are not part of the REST interface, and need no key. */

import { queryOptions } from "@tanstack/react-query";

import { NoResponseError, problemOf } from "../api/problem.ts";
import type { Json } from "../runs/inspector/jsonRows.ts";

export type PublicationKind = "agents" | "workflows";

/** What this page reads of a card; all of it is shown as JSON. */
export type PublishedCardJson = Record<string, Json> & {
  readonly supportedInterfaces: readonly { readonly url: string }[];
};

export const publishedCardQuery = (kind: PublicationKind, name: string) =>
  queryOptions({
    queryKey: ["published-card", kind, name],
    queryFn: async ({ signal }) => {
      const path = `/a2a/${kind}/${encodeURIComponent(name)}/.well-known/agent-card.json`;
      const response = await fetch(path, { signal, cache: "no-cache" }).catch((error: unknown) => {
        if (signal.aborted) throw error;
        throw new NoResponseError("read");
      });
      if (!response.ok) throw await problemOf(response);
      return (await response.json()) as PublishedCardJson;
    },
    refetchInterval: 30_000,
  });
