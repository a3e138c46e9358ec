/** The run that was opened from the list: whoever goes back finds the place again. */

import { useRouter } from "@tanstack/react-router";
import { type RefObject, useLayoutEffect } from "react";

let opened: { readonly run: string; readonly from: number } | null = null;

/** To be called when a run is opened. */
export function useOpenedRun(): (run: string) => void {
  const router = useRouter();
  return (run) => {
    opened = { run, from: router.history.location.state.__TSR_index };
  };
}

/** Gives the focus to the run that was opened, if this is the way back. */
export function useReturnToRun(area: RefObject<HTMLElement | null>): void {
  const router = useRouter();
  useLayoutEffect(() => {
    if (opened?.from !== router.history.location.state.__TSR_index) return;
    area.current?.querySelector<HTMLElement>(`[data-run="${CSS.escape(opened.run)}"] [data-run-link]`)?.focus();
  }, [router, area]);
}
