/** Something is on its way. Shown only if it takes a while: what comes at once should not flicker. */

import { Skeleton, Stack, VisuallyHidden } from "@mantine/core";
import { useEffect, useState } from "react";

const UNNOTICED_MS = 150;

/** True once the component has been there for so long that waiting is noticed. */
export function useNoticed(): boolean {
  const [noticed, setNoticed] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setNoticed(true), UNNOTICED_MS);
    return () => clearTimeout(timer);
  }, []);
  return noticed;
}

/** Grey lines in the place of what is to come, once waiting is noticed. */
export function Loading({ lines = 6 }: { lines?: number }) {
  return useNoticed() ? <Placeholder lines={lines} /> : null;
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
