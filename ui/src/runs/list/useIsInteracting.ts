/**
 * Whether the user interacts with the rows: the pointer is over them or the bar above, the focus is in them, or the page
 * is scrolled. The bar counts because the pointer moves over it to the button that shows new runs.
 */

import { type RefObject, useEffect, useState } from "react";

const TOP_PX = 40;

export function useIsInteracting(
  list: RefObject<HTMLElement | null>,
  table: RefObject<HTMLElement | null>,
  isThere: boolean,
): boolean {
  const [pointed, setPointed] = useState(false);
  const [focused, setFocused] = useState(false);
  const [scrolled, setScrolled] = useState(false);
  useEffect(() => {
    const [outer, rows] = [list.current, table.current];
    if (outer === null || rows === null) {
      setPointed(false);
      setFocused(false);
      return;
    }
    // A touch does not leave a pointer over the rows.
    const point = (event: PointerEvent) => setPointed(event.type === "pointerenter" && event.pointerType === "mouse");
    const focus = () => setFocused(true);
    const blur = (event: FocusEvent) => setFocused(rows.contains(event.relatedTarget as Node | null));
    outer.addEventListener("pointerenter", point);
    outer.addEventListener("pointerleave", point);
    rows.addEventListener("focusin", focus);
    rows.addEventListener("focusout", blur);
    return () => {
      outer.removeEventListener("pointerenter", point);
      outer.removeEventListener("pointerleave", point);
      rows.removeEventListener("focusin", focus);
      rows.removeEventListener("focusout", blur);
    };
  }, [list, table, isThere]);
  useEffect(() => {
    const scroll = () => setScrolled(window.scrollY > TOP_PX);
    window.addEventListener("scroll", scroll, { passive: true });
    return () => window.removeEventListener("scroll", scroll);
  }, []);
  return pointed || focused || scrolled;
}
