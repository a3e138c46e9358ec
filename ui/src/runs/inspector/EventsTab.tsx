/** The events of a run or a step. Only visible rows are rendered. */

import { Text } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronRight } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";

import type { RunEvent } from "../../api/eventStream.ts";
import { Loading } from "../../app/Loading.tsx";
import { absoluteTime, formatDuration, useTimeZone } from "../../app/Timestamp.tsx";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import type { RunModel } from "../model.ts";
import classes from "./inspector.module.css";
import { MOST_EVENTS, useEvents } from "./useEvents.ts";

const ROW_HEIGHT = 28;
const OVERSCAN = 20;

interface Shown {
  readonly run: string;
  readonly model: RunModel;
  readonly step: string | null;
  readonly attempt: number | null;
}

export function EventsTab({ run, model, step, attempt }: Shown) {
  const { events, error, refetch, cutAt, more } = useEvents(run, step, model.seq);
  const shown = useMemo(
    () =>
      events?.filter(({ data }) => attempt === null || data["attempt"] === undefined || data["attempt"] === attempt),
    [events, attempt],
  );
  if (error !== null) return <ProblemPanel error={error} again={() => void refetch()} />;
  if (shown === undefined) return <Loading />;
  if (shown.length === 0)
    return (
      <Text size="sm" c="dimmed" data-testid="no-events">
        No events yet.
      </Text>
    );
  return (
    <>
      <EventList events={shown} begin={model.startedAt ?? Date.parse(shown[0]!.at)} onEnd={more} />
      {cutAt !== null && (
        <Text size="sm" mt="xs">
          The first {MOST_EVENTS.toLocaleString()} events are shown. The rest: GET /api/v1/runs/{run}/events?after=
          {cutAt}
          {step === null ? "" : `&step=${step}`}
        </Text>
      )}
    </>
  );
}

/** `onEnd` is called before the last event becomes visible. */
function EventList({ events, begin, onEnd }: { events: readonly RunEvent[]; begin: number; onEnd: () => void }) {
  const frame = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const [zone] = useTimeZone();
  const virtual = useVirtualizer({
    count: events.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_HEIGHT,
    getItemKey: (place) => events[place]!.seq,
    overscan: OVERSCAN,
  });
  const last = virtual.getVirtualItems().at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= events.length - OVERSCAN) onEnd();
  }, [last, events.length, onEnd]);
  const turn = (seq: number) => {
    const now = new Set(open);
    if (!now.delete(seq)) now.add(seq);
    setOpen(now);
  };
  return (
    <div ref={frame} className={classes["events"]} data-testid="events" data-count={events.length}>
      <ol style={{ height: virtual.getTotalSize() }} aria-label="Events">
        {virtual.getVirtualItems().map((item) => {
          const event = events[item.index]!;
          const at = Date.parse(event.at);
          const isOpen = open.has(event.seq);
          const Icon = isOpen ? ChevronDown : ChevronRight;
          return (
            <li
              key={item.key}
              ref={virtual.measureElement}
              data-index={item.index}
              style={{ transform: `translateY(${item.start}px)` }}
              data-testid="event"
              data-type={event.type}
            >
              <button type="button" className={classes["event"]} aria-expanded={isOpen} onClick={() => turn(event.seq)}>
                <Icon size={13} aria-hidden />
                <span className={classes["seq"]}>{event.seq}</span>
                <time className={classes["when"]} dateTime={event.at} title={absoluteTime(at, zone)}>
                  +{formatDuration(at - begin)}
                </time>
                <span className={classes["about"]}>
                  <span className={classes["type"]}>{event.type}</span>
                  {about(event)}
                </span>
              </button>
              {isOpen && (
                <pre className={classes["text"]} tabIndex={0} aria-label={`Event ${event.seq}`}>
                  {JSON.stringify(event.data, null, 2)}
                </pre>
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

/** The details of the row: step, attempt and message. */
function about({ data }: RunEvent): string {
  const { step, attempt, error, reason, agent } = data;
  const failure = typeof error === "object" && error !== null ? (error as { message?: unknown }).message : null;
  return [step, typeof attempt === "number" ? `attempt ${attempt}` : null, agent, failure, reason]
    .filter((word) => typeof word === "string" && word !== "")
    .join(" · ");
}
