/** Refreshes the inbox after changes of runs. Used once, in a component that is always mounted. */

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";

import { subscribeToRunChanges } from "../api/runChanges.ts";
import { key } from "../api/apiKey.ts";

// A busy system sends two notifications per second, few of which concern the inbox.
const CALMLY_MS = 1_000;

export function useInboxRefresh(): void {
  const queries = useQueryClient();
  // Subscribe again after a key was entered.
  const present = useSyncExternalStore(key.subscribe, key.read);
  useEffect(() => {
    const leaving = new AbortController();
    let timer: ReturnType<typeof setTimeout> | null = null;
    const read = () => {
      timer = null;
      void queries.invalidateQueries({ queryKey: ["inbox"] });
    };
    subscribeToRunChanges(
      { onChange: () => (timer ??= setTimeout(read, CALMLY_MS)), onLive: () => undefined },
      leaving.signal,
    );
    return () => {
      leaving.abort();
      if (timer !== null) clearTimeout(timer);
    };
  }, [queries, present]);
}
