/** Refetches after a change without cancelling a running request. */

import { useEffect, useRef } from "react";

interface Asked {
  readonly isFetching: boolean;
  readonly refetch: () => unknown;
}

export function useRefetchOnChange(moved: unknown, { isFetching, refetch }: Asked): void {
  const seen = useRef(moved);
  // The running request may be older than the change. It is not cancelled: it may be the page the user just asked for.
  useEffect(() => {
    if (isFetching || seen.current === moved) return;
    seen.current = moved;
    void refetch();
  }, [isFetching, moved, refetch]);
}
