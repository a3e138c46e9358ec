/** Loading indicators. They appear after a short delay, so that fast responses do not flicker. */

import { Skeleton, Stack, VisuallyHidden } from "@mantine/core";
import { useEffect, useState } from "react";

const UNNOTICED_MS = 150;

/** True after the delay. */
export function useIsDelayed(): boolean {
  const [noticed, setNoticed] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setNoticed(true), UNNOTICED_MS);
    return () => clearTimeout(timer);
  }, []);
  return noticed;
}

/** Skeleton lines, shown after the delay. */
export function Loading({ lines = 6 }: { lines?: number }) {
  return useIsDelayed() ? <Placeholder lines={lines} /> : null;
}

export function Placeholder({ lines = 6 }: { lines?: number }) {
  return (
    <Stack gap="xs" role="status" data-testid="loading">
      <VisuallyHidden>Loading…</VisuallyHidden>
      {Array.from({ length: lines }, (_, line) => (
        <Skeleton key={line} height={line === 0 ? 28 : 18} width={line === 0 ? "12rem" : `${95 - (line % 3) * 12}%`} />
      ))}
    </Stack>
  );
}
