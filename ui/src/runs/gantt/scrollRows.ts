/** Scrolls to the selected and to the focused row. */

import { type RefObject, useEffect, useRef } from "react";

import type { Row } from "./rows.ts";

// Must match the style sheet.
export const ROW_HEIGHT = 28;
export const RULER_HEIGHT = 25;

/** The row that was scrolled to last, and the state of the rows then. */
interface Followed {
  readonly id: string | null;
  readonly room: number;
  readonly top: number;
}

/**
 * Scrolls once per selection, as soon as its row exists, and again while the layout still changes.
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

/** Scrolls as little as needed to show the row below the sticky axis. */
export function scrollRowIntoView(scroller: HTMLElement, place: number): void {
  const above = place * ROW_HEIGHT;
  const below = above + RULER_HEIGHT + ROW_HEIGHT - scroller.clientHeight;
  if (scroller.scrollTop > above) scroller.scrollTop = above;
  else if (scroller.scrollTop < below) scroller.scrollTop = below;
}
