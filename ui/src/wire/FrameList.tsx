/** The events of a stream with their times. */

import { Text } from "@mantine/core";
import { useState } from "react";

import type { components } from "../api/schema.d.ts";
import { formatDuration } from "../app/Timestamp.tsx";
import { BodyText } from "./BodyText.tsx";
import classes from "./wire.module.css";

type Frame = components["schemas"]["Frame"];

// Longer events are truncated.
const SHORT = 1_000;

export function FrameList({ frames }: { frames: readonly Frame[] }) {
  const [open, setOpen] = useState<number | null>(null);
  return (
    <ol className={classes["frames"]} aria-label="Stream events" data-testid="frames">
      {frames.map((frame, place) => (
        <li key={place} data-testid="frame">
          <button
            type="button"
            className={classes["frame"]}
            aria-expanded={open === place}
            onClick={() => setOpen(open === place ? null : place)}
          >
            <span className={classes["at"]}>+{formatDuration(frame.at_ms)}</span>
            <span className={classes["data"]}>{shortened(frame.data)}</span>
          </button>
          {open === place && (
            <div className={classes["opened"]}>
              <BodyText text={frame.data} label={`event ${place + 1}`} />
            </div>
          )}
        </li>
      ))}
      {frames.length === 0 && (
        <Text size="sm" c="dimmed">
          No events.
        </Text>
      )}
    </ol>
  );
}

function shortened(data: string): string {
  const line = data.replace(/\s+/g, " ");
  return line.length > SHORT ? `${line.slice(0, SHORT)}…` : line;
}
