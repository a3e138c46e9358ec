/** The server's time of now, several times a second while something goes on; otherwise it stands. */

import { useEffect, useState } from "react";

import { serverNow } from "../api/clock.ts";

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
