/** Reads the inbox again when runs have moved: once for the whole page, by whoever is always there. */

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";

import { subscribeToRunChanges } from "../api/runChanges.ts";
import { key } from "../api/key.ts";

// A busy system rings twice a second, and seldom because of a question.
const CALMLY_MS = 1_000;

export function useInboxRefresh(): void {
  const queries = useQueryClient();
  // Who was refused without a key listens again with one.
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
