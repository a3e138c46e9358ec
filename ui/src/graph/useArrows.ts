/** Arrow keys lead from step to step, to the nearest one that way. */

import { useReactFlow } from "@xyflow/react";
import { type KeyboardEvent, useCallback } from "react";

import type { Layout, Place } from "./layout.ts";
import type { Live } from "./live.ts";

const WAYS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowDown: [0, 1],
  ArrowUp: [0, -1],
};
// What lies aside is farther than what lies ahead.
const ASIDE = 3;

export function useArrows(live: Live, layout: Layout | null) {
  const { setCenter, getZoom, screenToFlowPosition } = useReactFlow();
  return useCallback(
    (event: KeyboardEvent<HTMLElement>) => {
      const way = WAYS[event.key];
      const here = (event.target as HTMLElement).dataset["node"];
      if (way === undefined || here === undefined || layout === null) return;
      event.preventDefault();
      const next = nearest(layout, here, way);
      if (next === null) return;
      live.moveStop(next);
      const frame = event.currentTarget;
      const place = layout.places.get(next)!;
      const focus = () => {
        frame.querySelector<HTMLElement>(`[data-node="${CSS.escape(next)}"]`)?.focus({ preventScroll: true });
      };
      const bounds = frame.getBoundingClientRect();
      const from = screenToFlowPosition({ x: bounds.left, y: bounds.top });
      const to = screenToFlowPosition({ x: bounds.right, y: bounds.bottom });
      if (place.x >= from.x && place.y >= from.y && place.x + place.width <= to.x && place.y + place.height <= to.y) {
        focus();
      } else {
        void setCenter(place.x + place.width / 2, place.y + place.height / 2, { zoom: Math.max(getZoom(), 0.5) }).then(() =>
          requestAnimationFrame(focus),
        );
      }
    },
    [live, layout, setCenter, getZoom, screenToFlowPosition],
  );
}

function nearest(layout: Layout, here: string, [right, down]: readonly [number, number]): string | null {
  const start = layout.places.get(here);
  if (start === undefined) return null;
  let best: { id: string; distance: number } | null = null;
  for (const [id, place] of layout.places) {
    if (id === here) continue;
    const [across, along] = [middle(place).x - middle(start).x, middle(place).y - middle(start).y];
    const ahead = across * right + along * down;
    if (ahead <= 1) continue;
    const distance = ahead + ASIDE * Math.abs(across * down + along * right);
    if (best === null || distance < best.distance) best = { id, distance };
  }
  return best?.id ?? null;
}

function middle(place: Place) {
  return { x: place.x + place.width / 2, y: place.y + place.height / 2 };
}
