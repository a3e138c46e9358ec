/** Remembers the run that was opened from the list, to restore the focus after going back. */

import { useRouter } from "@tanstack/react-router";
import { type RefObject, useLayoutEffect } from "react";

let opened: { readonly run: string; readonly from: number } | null = null;

/** Call this when a run is opened. */
export function useOpenedRun(): (run: string) => void {
  const router = useRouter();
  return (run) => {
    opened = { run, from: router.history.location.state.__TSR_index };
  };
}

/** Focuses the run that was opened, after going back. */
export function useReturnToRun(area: RefObject<HTMLElement | null>): void {
  const router = useRouter();
  useLayoutEffect(() => {
    if (opened?.from !== router.history.location.state.__TSR_index) return;
    area.current?.querySelector<HTMLElement>(`[data-run="${CSS.escape(opened.run)}"] [data-run-link]`)?.focus();
  }, [router, area]);
}
