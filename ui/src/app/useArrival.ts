/** After a change of the page its heading has the focus: who listens hears where they are, and Tab goes on from there. */

import { useRouter } from "@tanstack/react-router";
import { useEffect } from "react";

export function useArrival(): void {
  const router = useRouter();
  useEffect(
    () =>
      router.subscribe("onRendered", ({ pathChanged, fromLocation }) => {
        // The first page is where the browser has put the focus already.
        if (!pathChanged || fromLocation === undefined) return;
        const main = document.getElementById("main");
        if (main === null || isBusy(main)) return;
        const heading = main.querySelector("h1");
        heading?.setAttribute("tabindex", "-1");
        (heading ?? main).focus({ preventScroll: true });
        window.scrollTo(0, 0);
      }),
    [router],
  );
}

/** Whether the new page has given the focus to a field of its own. */
function isBusy(main: HTMLElement): boolean {
  const focused = document.activeElement;
  return focused instanceof HTMLElement && main.contains(focused) && focused.matches("input, textarea, [contenteditable=true]");
}
