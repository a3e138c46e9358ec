/** Exchanges in order of their start. Each expands to its details. */

import { Text } from "@mantine/core";
import { ChevronDown, ChevronRight, CircleCheck, CircleX } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";

import { clockTime } from "../app/clockTime.ts";
import { absoluteTime, formatDuration, useTimeZone } from "../app/Timestamp.tsx";
import { type Exchange, isSuccessful, kindOf, KINDS, type Named, pollsName, rowsOf } from "./exchange.ts";
import { ExchangeDetail } from "./ExchangeDetail.tsx";
import { type Stretch, stretchOf, TimingBar } from "./Timing.tsx";
import classes from "./wire.module.css";

export function ExchangeList({
  exchanges,
  whose = null,
  opened = null,
  onOpened,
}: {
  exchanges: readonly Exchange[];
  /** Whether the list mixes steps or attempts, so that each row names its own. */
  whose?: Whose;
  /** The names of the expanded rows; null for the default. */
  opened?: ReadonlySet<string> | null;
  /** If undefined, the list keeps its own state. */
  onOpened?: (opened: ReadonlySet<string> | null) => void;
}) {
  const rows = useMemo(() => rowsOf(exchanges), [exchanges]);
  const within = useMemo(() => stretchOf(exchanges), [exchanges]);
  // A single exchange is expanded by default.
  const [first] = useState<ReadonlySet<string>>(
    () => new Set(rows.length === 1 && rows[0]!.of === "one" ? [rows[0]!.one.name] : []),
  );
  const [own, setOwn] = useState(first);
  const [sought] = useState(() => (opened === null ? null : ([...opened].at(-1) ?? null)));
  const open = opened ?? own;
  const turn = (name: string, inside: readonly string[] = []) => {
    const closing = [name, ...inside].filter((each) => open.has(each));
    const now = new Set([...open].filter((each) => !closing.includes(each)));
    if (closing.length === 0) now.add(name);
    if (onOpened === undefined) setOwn(now);
    else onOpened([...now].join() === [...first].join() ? null : now);
  };
  return (
    <div className={classes["wire"]}>
      <ol className={classes["exchanges"]} aria-label="Exchanges" data-testid="exchanges">
        {rows.map((row) => {
          const shown = { whose, within, open, sought, turn };
          return row.of === "one" ? (
            <ExchangeRow key={row.one.name} {...row.one} {...shown} />
          ) : (
            <Polls key={pollsName(row.polls)} polls={row.polls} {...shown} />
          );
        })}
      </ol>
    </div>
  );
}

type Whose = "step" | "attempt" | null;

interface Shown {
  readonly whose: Whose;
  readonly within: Stretch;
  readonly open: ReadonlySet<string>;
  /** The exchange to scroll to. */
  readonly sought: string | null;
  /** Expands a row, or collapses it with its nested rows. */
  readonly turn: (name: string, inside?: readonly string[]) => void;
}

function ExchangeRow({ exchange, name, whose, within, open, sought, turn }: Named & Shown) {
  const row = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (name === sought) row.current?.scrollIntoView({ block: "center" });
  }, [name, sought]);
  const isOpen = open.has(name);
  const { word, meaning } = KINDS[kindOf(exchange)];
  const Icon = isOpen ? ChevronDown : ChevronRight;
  return (
    <li data-testid="exchange" data-kind={kindOf(exchange)}>
      <button ref={row} type="button" className={classes["row"]} aria-expanded={isOpen} onClick={() => turn(name)}>
        <Icon size={14} aria-hidden />
        <span className={classes["kind"]} title={meaning}>
          {word}
        </span>
        <Began exchange={exchange} />
        <span className={classes["what"]}>
          <Owner exchange={exchange} whose={whose} />
          {exchange.request.method} {pathOf(exchange.request.url)}
        </span>
        <Outcome exchange={exchange} />
        <TimingBar exchange={exchange} within={within} />
        <span className={classes["took"]}>{formatDuration(exchange.duration_ms)}</span>
      </button>
      {isOpen && <ExchangeDetail exchange={exchange} />}
    </li>
  );
}

function Polls({ polls, ...shown }: { polls: readonly Named[] } & Shown) {
  const name = pollsName(polls);
  const names = polls.map((each) => each.name);
  const exchanges = polls.map((each) => each.exchange);
  // An expanded poll may have been grouped with others later.
  const isOpen = [name, ...names].some((each) => shown.open.has(each));
  const Icon = isOpen ? ChevronDown : ChevronRight;
  const { from, to } = stretchOf(exchanges);
  const failed = exchanges.filter((each) => !isSuccessful(each)).length;
  return (
    <li data-testid="polls">
      <button type="button" className={classes["row"]} aria-expanded={isOpen} onClick={() => shown.turn(name, names)}>
        <Icon size={14} aria-hidden />
        <span className={classes["kind"]}>Polls</span>
        <Began exchange={exchanges[0]!} />
        <span className={classes["what"]}>
          <Owner exchange={exchanges[0]!} whose={shown.whose} />
          Polled the task {exchanges.length} times{failed > 0 ? `, ${failed} failed` : ""}
        </span>
        <Outcome exchange={exchanges[exchanges.length - 1]!} />
        <span className={classes["timing"]} aria-hidden />
        <span className={classes["took"]}>{formatDuration(to - from)}</span>
      </button>
      {isOpen && (
        <ol className={classes["exchanges"]} aria-label="Polls">
          {polls.map((poll) => (
            <ExchangeRow key={poll.name} {...poll} {...shown} />
          ))}
        </ol>
      )}
    </li>
  );
}

function Began({ exchange }: { exchange: Exchange }) {
  const [zone] = useTimeZone();
  const at = Date.parse(exchange.started_at);
  // In seconds: the order and the bars show the rest.
  return (
    <time className={classes["began"]} dateTime={exchange.started_at} title={absoluteTime(at, zone)}>
      {clockTime(at, zone).slice(0, 8)}
    </time>
  );
}

function Owner({ exchange, whose }: { exchange: Exchange; whose: Whose }) {
  // The first message of a caller belongs to no step.
  if (whose === null || exchange.step === "") return null;
  return (
    <span className={classes["whose"]} data-testid="whose">
      {whose === "step" ? `${exchange.step} · attempt ${exchange.attempt}` : `Attempt ${exchange.attempt}`} ·{" "}
    </span>
  );
}

function Outcome({ exchange }: { exchange: Exchange }) {
  const well = isSuccessful(exchange);
  const Icon = well ? CircleCheck : CircleX;
  return (
    <span className={classes["outcome"]} data-well={well}>
      <Icon size={13} aria-hidden />
      {exchange.response === null ? "No response" : exchange.response.status}
      {exchange.error !== null && exchange.response !== null && " incomplete"}
    </span>
  );
}

/** The URL without its scheme: the end of a URL distinguishes calls to the same agent. */
function pathOf(url: string): string {
  try {
    const { host, pathname, search } = new URL(url);
    return host === "" ? url : `${host}${pathname}${search}`;
  } catch {
    return url;
  }
}

export function NoExchanges({ running }: { running: boolean }) {
  return (
    <Text size="sm" c="dimmed" data-testid="no-exchanges">
      {running ? "No exchanges yet. An exchange is shown after it has ended." : "No exchanges."}
    </Text>
  );
}
