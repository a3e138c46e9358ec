/** Focuses the heading after a navigation: screen readers announce the page, and Tab continues from there. */

import { useRouter } from "@tanstack/react-router";
import { useEffect } from "react";

export function useFocusOnNavigation(): void {
  const router = useRouter();
  useEffect(() => {
    let forget = () => {};
    const unsubscribe = router.subscribe("onRendered", ({ pathChanged, fromLocation }) => {
      forget();
      // On the first page, the browser has already set the focus.
      if (!pathChanged || fromLocation === undefined) return;
      const main = document.getElementById("main");
      if (main === null || isBusy(main)) return;
      window.scrollTo(0, 0);
      if (!focusHeading(main)) {
        main.focus({ preventScroll: true });
        forget = focusLater(main);
      }
    });
    return () => {
      forget();
      unsubscribe();
    };
  }, [router]);
}

/** Whether the new page has focused one of its own fields, or restored the previous focus. */
function isBusy(main: HTMLElement): boolean {
  const focused = document.activeElement;
  return (
    focused instanceof HTMLElement &&
    main.contains(focused) &&
    focused.matches("input, textarea, [contenteditable=true], [data-keeps-focus]")
  );
}

function focusHeading(main: HTMLElement): boolean {
  const heading = main.querySelector("h1");
  heading?.setAttribute("tabindex", "-1");
  heading?.focus({ preventScroll: true });
  return heading !== null;
}

/** The heading may appear only after data is loaded; by then the user may have moved the focus. */
function focusLater(main: HTMLElement): () => void {
  const observer = new MutationObserver(() => {
    if (document.activeElement !== main || focusHeading(main)) observer.disconnect();
  });
  observer.observe(main, { childList: true, subtree: true });
  return () => observer.disconnect();
}
