/**
 * Keyboard navigation of the timeline, which is one tab stop. Up and down move between rows, right and left expand and
 * collapse, Enter and Space select.
 */

import { type FocusEvent, type KeyboardEvent, useCallback, useEffect, useRef, useState } from "react";

import type { Row } from "./rows.ts";

export function useRowKeys(rows: readonly Row[], selected: string | null, onOpen: (step: string) => void) {
  const [at, setAt] = useState<string | null>(null);
  // At first, Tab focuses the selected row.
  const stop = Math.max(
    0,
    rows.findIndex((row) => row.id === (at ?? selected)),
  );
  const wanted = useRef<{ readonly id: string; readonly group: HTMLElement } | null>(null);
  // After each render: a distant row exists only after scrolling to it.
  useEffect(() => {
    if (wanted.current === null) return;
    const chooser = wanted.current.group.querySelector<HTMLElement>(
      `[data-row="${CSS.escape(wanted.current.id)}"] [data-chooser]`,
    );
    if (chooser === null) return;
    wanted.current = null;
    chooser.focus({ preventScroll: true });
  });
  const onKeyDown = useCallback(
    (event: KeyboardEvent<HTMLElement>, show: (place: number) => void) => {
      const id = rowOf(event.target);
      const here = rows.findIndex((each) => each.id === id);
      const row = rows[here];
      if (row === undefined || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      if (row.opens !== null && event.key === (row.open ? "ArrowLeft" : "ArrowRight")) {
        event.preventDefault();
        onOpen(row.id);
        return;
      }
      const place = placeAfter(event.key, here, rows.length);
      if (place === null) return;
      event.preventDefault();
      if (place === here) return;
      wanted.current = { id: rows[place]!.id, group: event.currentTarget };
      setAt(rows[place]!.id);
      show(place);
    },
    [rows, onOpen],
  );
  const moveStop = useCallback((event: FocusEvent<HTMLElement>) => setAt(rowOf(event.target)), []);
  return { stop, moveStop, onKeyDown };
}

function rowOf(element: EventTarget): string | null {
  return (element as HTMLElement).closest<HTMLElement>("[data-row]")?.dataset["row"] ?? null;
}

function placeAfter(key: string, here: number, count: number): number | null {
  if (key === "ArrowDown") return Math.min(count - 1, here + 1);
  if (key === "ArrowUp") return Math.max(0, here - 1);
  if (key === "Home") return 0;
  return key === "End" ? count - 1 : null;
}
