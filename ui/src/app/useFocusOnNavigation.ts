/** After a change of the page its heading has the focus: who listens hears where they are, and Tab goes on from there. */

import { useRouter } from "@tanstack/react-router";
import { useEffect } from "react";

export function useFocusOnNavigation(): void {
  const router = useRouter();
  useEffect(() => {
    let forget = () => {};
    const unsubscribe = router.subscribe("onRendered", ({ pathChanged, fromLocation }) => {
      forget();
      // The first page is where the browser has put the focus already.
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

/** Whether the new page has given the focus to a field of its own, or to where one has been before. */
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

/** A page that has to ask for what its heading says has none at first; by then the reader may have gone on. */
function focusLater(main: HTMLElement): () => void {
  const observer = new MutationObserver(() => {
    if (document.activeElement !== main || focusHeading(main)) observer.disconnect();
  });
  observer.observe(main, { childList: true, subtree: true });
  return () => observer.disconnect();
}
