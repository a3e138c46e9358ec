/** The range of the timeline, and the end of open bars. */

import { useMemo } from "react";

import type { RunModel } from "../model.ts";
import { useRunClock } from "../useRunClock.ts";
import { roomFor, type Scale } from "./timeScale.ts";

/** `inner`: the expanded child runs, which may end after their parent. */
export function useTimeScale(model: RunModel, inner: readonly RunModel[]): readonly [Scale, number] {
  const runs = [model, ...inner];
  const goesOn = runs.some(({ startedAt, finishedAt }) => startedAt !== null && finishedAt === null);
  const present = useRunClock(goesOn);
  const last = Math.max(...runs.map(({ finishedAt, lastAt }) => finishedAt ?? lastAt ?? 0));
  const now = model.finishedAt !== null && !goesOn ? last : Math.max(present, last);
  const from = model.startedAt ?? now;
  const to = from + (goesOn ? roomFor(now - from) : Math.max(1, now - from));
  return [useMemo(() => ({ from, to }), [from, to]), now];
}
