/** Rows that are brought into sight: what is chosen, and where the keyboard goes. */

import { type RefObject, useEffect, useRef } from "react";

import type { Row } from "./rows.ts";

// As in the style sheet.
export const ROW_HEIGHT = 28;
export const RULER_HEIGHT = 25;

/** What was brought into sight last, and how the rows stood then. */
interface Followed {
  readonly id: string | null;
  readonly room: number;
  readonly top: number;
}

/**
 * Once for each choice, as soon as its row is there, and again while the room for it is still changing: after that the
 * reader scrolls.
 */
export function useScrollToSelection(
  scroller: RefObject<HTMLElement | null>,
  rows: readonly Row[],
  selected: string | null,
  room: number,
): void {
  const followed = useRef<Followed | null>(null);
  useEffect(() => {
    const element = scroller.current;
    if (element === null || room === 0) return;
    const last = followed.current;
    if (last?.id === selected && (last.room === room || last.top !== element.scrollTop)) return;
    const place = selected === null ? -1 : rows.findIndex((row) => row.id === selected);
    if (selected !== null && place < 0) return;
    if (place >= 0) scrollRowIntoView(element, place);
    followed.current = { id: selected, room, top: element.scrollTop };
  }, [scroller, selected, rows, room]);
}

/** As little as is needed: below the ruler, which covers the top, and above the end. */
export function scrollRowIntoView(scroller: HTMLElement, place: number): void {
  const above = place * ROW_HEIGHT;
  const below = above + RULER_HEIGHT + ROW_HEIGHT - scroller.clientHeight;
  if (scroller.scrollTop > above) scroller.scrollTop = above;
  else if (scroller.scrollTop < below) scroller.scrollTop = below;
}
