/** Times: relative in the text, absolute in the tooltip, local or in UTC. */

import { useLocalStorage } from "@mantine/hooks";
import { useSyncExternalStore } from "react";

import { serverNow } from "../api/serverClock.ts";

const listeners = new Set<() => void>();
let now = serverNow();
let timer: ReturnType<typeof setInterval> | null = null;

// Defined once: with a new function per render, frequent renders would resubscribe before the clock ticks.
function listen(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === null) {
    now = serverNow();
    timer = setInterval(() => {
      now = serverNow();
      for (const each of listeners) each();
    }, 1_000);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && timer !== null) {
      clearInterval(timer);
      timer = null;
    }
  };
}

function read(): number {
  return now;
}

/** One clock for the whole page, so that all relative times change together. */
export function useNow(): number {
  return useSyncExternalStore(listen, read);
}

export function useTimeZone() {
  return useLocalStorage<"local" | "utc">({
    key: "trunkline.times",
    defaultValue: "local",
    getInitialValueInEffect: false,
  });
}

export function absoluteTime(at: number, zone: "local" | "utc"): string {
  if (zone === "utc") return new Date(at).toISOString().replace("T", " ").replace("Z", " UTC");
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

const UNITS: readonly (readonly [number, string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

/** How long ago, or for a time to come, in how long. */
export function relativeTime(milliseconds: number): string {
  for (const [size, name] of UNITS) {
    if (milliseconds >= size) return `${Math.floor(milliseconds / size)} ${name} ago`;
    if (milliseconds <= -Math.max(size, SOON_MS)) return `in ${Math.round(-milliseconds / size)} ${name}`;
  }
  return "just now";
}

// The clocks of browser and server can differ by less than this.
const SOON_MS = 5_000;

export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(1)} s`;
  const seconds = Math.floor(milliseconds / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

export function Timestamp({ at }: { at: string | null }) {
  const present = useNow();
  const [zone] = useTimeZone();
  if (at === null) return <span>–</span>;
  const instant = Date.parse(at);
  return (
    <time dateTime={at} title={absoluteTime(instant, zone)}>
      {relativeTime(present - instant)}
    </time>
  );
}

export function Duration({ from, to }: { from: string | null; to: string | null }) {
  const present = useNow();
  if (from === null) return <span>–</span>;
  return <span>{formatDuration((to === null ? present : Date.parse(to)) - Date.parse(from))}</span>;
}
