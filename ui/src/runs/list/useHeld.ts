/** Whether somebody is busy with the rows: points at them, has the focus in them, or reads further down. */

import { type RefObject, useEffect, useState } from "react";

const TOP_PX = 40;

export function useHeld(area: RefObject<HTMLElement | null>, isThere: boolean): boolean {
  const [pointed, setPointed] = useState(false);
  const [focused, setFocused] = useState(false);
  const [scrolled, setScrolled] = useState(false);
  useEffect(() => {
    const element = area.current;
    if (element === null) {
      setPointed(false);
      setFocused(false);
      return;
    }
    // A finger leaves nothing behind where it was.
    const point = (event: PointerEvent) => setPointed(event.type === "pointerenter" && event.pointerType === "mouse");
    const focus = () => setFocused(true);
    const blur = (event: FocusEvent) => setFocused(element.contains(event.relatedTarget as Node | null));
    element.addEventListener("pointerenter", point);
    element.addEventListener("pointerleave", point);
    element.addEventListener("focusin", focus);
    element.addEventListener("focusout", blur);
    return () => {
      element.removeEventListener("pointerenter", point);
      element.removeEventListener("pointerleave", point);
      element.removeEventListener("focusin", focus);
      element.removeEventListener("focusout", blur);
    };
  }, [area, isThere]);
  useEffect(() => {
    const scroll = () => setScrolled(window.scrollY > TOP_PX);
    window.addEventListener("scroll", scroll, { passive: true });
    return () => window.removeEventListener("scroll", scroll);
  }, []);
  return pointed || focused || scrolled;
}
