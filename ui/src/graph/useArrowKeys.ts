/** Arrow keys move the focus to the nearest step in that direction. */

import { type KeyboardEvent, useCallback } from "react";

import type { Layout, Rect } from "./layout.ts";
import type { Live } from "./graphState.ts";

const DIRECTIONS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowDown: [0, 1],
  ArrowUp: [0, -1],
};
// Sideways distance counts more than distance ahead.
const SIDEWAYS_WEIGHT = 3;

export function useArrowKeys(live: Live, layout: Layout | null, bring: (node: string) => void) {
  return useCallback(
    (event: KeyboardEvent<HTMLElement>) => {
      const direction = DIRECTIONS[event.key];
      const here = (event.target as HTMLElement).dataset["node"];
      if (direction === undefined || here === undefined || layout === null) return;
      event.preventDefault();
      const next = nearest(layout, here, direction);
      if (next === null) return;
      live.moveStop(next);
      const frame = event.currentTarget;
      bring(next);
      const found = () => frame.querySelector<HTMLElement>(`[data-node="${CSS.escape(next)}"]`);
      // In a large graph, the step may only be rendered now.
      if (found() === null) requestAnimationFrame(() => found()?.focus({ preventScroll: true }));
      else found()!.focus({ preventScroll: true });
    },
    [live, layout, bring],
  );
}

function nearest(layout: Layout, here: string, [right, down]: readonly [number, number]): string | null {
  const start = layout.rects.get(here);
  if (start === undefined) return null;
  let best: { id: string; distance: number } | null = null;
  for (const [id, rect] of layout.rects) {
    if (id === here) continue;
    const [across, along] = [middle(rect).x - middle(start).x, middle(rect).y - middle(start).y];
    const ahead = across * right + along * down;
    if (ahead <= 1) continue;
    const distance = ahead + SIDEWAYS_WEIGHT * Math.abs(across * down + along * right);
    if (best === null || distance < best.distance) best = { id, distance };
  }
  return best?.id ?? null;
}

function middle(rect: Rect) {
  return { x: rect.x + rect.width / 2, y: rect.y + rect.height / 2 };
}
