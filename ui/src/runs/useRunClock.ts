/** The current server time, updated several times a second while it is needed. */

import { useEffect, useState } from "react";

import { serverNow } from "../api/serverClock.ts";

const TICK_MS = 250;

export function useRunClock(goesOn: boolean): number {
  const [now, setNow] = useState(serverNow);
  useEffect(() => {
    if (!goesOn) return undefined;
    setNow(serverNow());
    const timer = setInterval(() => setNow(serverNow()), TICK_MS);
    return () => clearInterval(timer);
  }, [goesOn]);
  return now;
}
