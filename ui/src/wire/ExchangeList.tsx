/** Exchanges in the order in which they began; each opens to all that was on the wire. */

import { Text } from "@mantine/core";
import { ChevronDown, ChevronRight, CircleCheck, CircleX } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";

import { clockTime } from "../app/clockTime.ts";
import { absolute, lasting, useTimeZone } from "../app/Timestamp.tsx";
import { type Exchange, isWell, kindOf, KINDS, type Named, pollsName, rowsOf } from "./exchange.ts";
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
  /** Exchanges of several steps, or of several attempts of one, are among them, and each says whose it is. */
  whose?: Whose;
  /** The names of those that are open; null: nobody has said. */
  opened?: ReadonlySet<string> | null;
  /** Left out: the list itself remembers what is open. */
  onOpened?: (opened: ReadonlySet<string> | null) => void;
}) {
  const rows = useMemo(() => rowsOf(exchanges), [exchanges]);
  const within = useMemo(() => stretchOf(exchanges), [exchanges]);
  // A single one is what everybody wants to see.
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
            <One key={row.one.name} {...row.one} {...shown} />
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
  /** What somebody has come to see. */
  readonly sought: string | null;
  /** Opens it, or closes it with all that is inside. */
  readonly turn: (name: string, inside?: readonly string[]) => void;
}

function One({ exchange, name, whose, within, open, sought, turn }: Named & Shown) {
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
        <span className={classes["took"]}>{lasting(exchange.duration_ms)}</span>
      </button>
      {isOpen && <ExchangeDetail exchange={exchange} />}
    </li>
  );
}

function Polls({ polls, ...shown }: { polls: readonly Named[] } & Shown) {
  const name = pollsName(polls);
  const names = polls.map((each) => each.name);
  const exchanges = polls.map((each) => each.exchange);
  // One that is open may have been joined by others only now.
  const isOpen = [name, ...names].some((each) => shown.open.has(each));
  const Icon = isOpen ? ChevronDown : ChevronRight;
  const { from, to } = stretchOf(exchanges);
  const failed = exchanges.filter((each) => !isWell(each)).length;
  return (
    <li data-testid="polls">
      <button type="button" className={classes["row"]} aria-expanded={isOpen} onClick={() => shown.turn(name, names)}>
        <Icon size={14} aria-hidden />
        <span className={classes["kind"]}>Polls</span>
        <Began exchange={exchanges[0]!} />
        <span className={classes["what"]}>
          <Owner exchange={exchanges[0]!} whose={shown.whose} />
          Asked {exchanges.length} times how the task stands{failed > 0 ? `; ${failed} without success` : ""}
        </span>
        <Outcome exchange={exchanges[exchanges.length - 1]!} />
        <span className={classes["timing"]} aria-hidden />
        <span className={classes["took"]}>{lasting(to - from)}</span>
      </button>
      {isOpen && (
        <ol className={classes["exchanges"]} aria-label="Polls">
          {polls.map((poll) => (
            <One key={poll.name} {...poll} {...shown} />
          ))}
        </ol>
      )}
    </li>
  );
}

function Began({ exchange }: { exchange: Exchange }) {
  const [zone] = useTimeZone();
  const at = Date.parse(exchange.started_at);
  // To the second: the list has them in their order, and the bar says how long each of them took.
  return (
    <time className={classes["began"]} dateTime={exchange.started_at} title={absolute(at, zone)}>
      {clockTime(at, zone).slice(0, 8)}
    </time>
  );
}

function Owner({ exchange, whose }: { exchange: Exchange; whose: Whose }) {
  if (whose === null) return null;
  return (
    <span className={classes["whose"]} data-testid="whose">
      {whose === "step" ? `${exchange.step} · attempt ${exchange.attempt}` : `Attempt ${exchange.attempt}`} ·{" "}
    </span>
  );
}

function Outcome({ exchange }: { exchange: Exchange }) {
  const well = isWell(exchange);
  const Icon = well ? CircleCheck : CircleX;
  return (
    <span className={classes["outcome"]} data-well={well}>
      <Icon size={13} aria-hidden />
      {exchange.response === null ? "No answer" : exchange.response.status}
      {exchange.error !== null && exchange.response !== null && " cut"}
    </span>
  );
}

/** The end of an address is what tells two calls of one agent apart. */
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
      {running
        ? "Nothing has gone over the wire yet. An exchange is shown when it has ended."
        : "Nothing has gone over the wire."}
    </Text>
  );
}
