/** Asks again when something has moved, without breaking off what is under way. */

import { useEffect, useRef } from "react";

interface Asked {
  readonly isFetching: boolean;
  readonly refetch: () => unknown;
}

export function useRefetchOnChange(moved: unknown, { isFetching, refetch }: Asked): void {
  const seen = useRef(moved);
  // What is under way may be older than the move; broken off, it might be the page that somebody has just asked for.
  useEffect(() => {
    if (isFetching || seen.current === moved) return;
    seen.current = moved;
    void refetch();
  }, [isFetching, moved, refetch]);
}
