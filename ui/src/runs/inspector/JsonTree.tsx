/**
 * A JSON value as a tree that can be expanded, searched and copied. Only visible rows are rendered.
 *
 * Keys: up and down move, right expands, left collapses or moves to the parent, Home and End jump, Enter toggles.
 */

import { ActionIcon, Group, Text, TextInput } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronRight, ChevronUp, Search } from "lucide-react";
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useMemo, useRef, useState } from "react";

import { isExact } from "../../api/exactJson.ts";
import { CopyTextButton } from "../../app/CopyTextButton.tsx";
import classes from "./inspector.module.css";
import { expressionOf, find, isHolder, type Json, keyOf, opening, type Row, rowsOf } from "./jsonRows.ts";
import { LongText } from "./LongText.tsx";

const ROW_HEIGHT = 22;
const INDENT = 16;
const SHORT = 300;
// A small value is fully expanded.
const OPEN_AT_ONCE = 40;

export function JsonTree({ value, root, label }: { value: Json; root: string; label: string }) {
  const [open, setOpen] = useState<ReadonlySet<string>>(() => openAtFirst(value));
  const [chosen, setChosen] = useState<string>(keyOf([]));
  const [text, setText] = useState("");
  const frame = useRef<HTMLDivElement>(null);
  const id = useId();

  const rows = useMemo(() => rowsOf(value, root, open), [value, root, open]);
  const wanted = useDeferredValue(text);
  const found = useMemo(() => (wanted === "" ? null : find(value, wanted)), [value, wanted]);
  const [hit, setHit] = useState(0);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 20,
  });

  const show = (key: string) => {
    const place = rows.findIndex((row) => row.key === key);
    if (place >= 0) virtual.scrollToIndex(place);
  };
  const go = (number: number) => {
    if (found === null || found.places.length === 0) return;
    const next = (number + found.places.length) % found.places.length;
    const place = found.places[next]!;
    setHit(next);
    setOpen((now) => new Set([...now, ...opening(value, place)]));
    setChosen(keyOf(place));
  };
  // eslint-disable-next-line react-hooks/exhaustive-deps -- only a new search jumps to its first match.
  useEffect(() => go(0), [found]);
  // eslint-disable-next-line react-hooks/exhaustive-deps -- `show` depends only on the rows.
  useEffect(() => show(chosen), [chosen, rows]);

  const turn = (row: Row, wish?: boolean) => {
    if (row.size === null) return;
    const now = new Set(open);
    if (wish ?? !now.has(row.key)) now.add(row.key);
    else now.delete(row.key);
    setOpen(now);
  };
  const current = rows.findIndex((row) => row.key === chosen);
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[current];
    if (row === undefined) return;
    const to = target(event.key, rows, current, open);
    if (event.key === "Enter" || event.key === " ") turn(row);
    else if (event.key === "ArrowRight" && row.size !== null && !open.has(row.key)) turn(row, true);
    else if (event.key === "ArrowLeft" && open.has(row.key)) turn(row, false);
    else if (to !== null) setChosen(rows[to]!.key);
    else return;
    event.preventDefault();
  };
  const selected = rows[current];
  return (
    <div className={classes["tree"]} data-testid="json">
      <Group gap="xs" wrap="nowrap">
        <TextInput
          size="xs"
          className={classes["search"]}
          aria-label={`Search in the ${label}`}
          placeholder="Search keys and values"
          leftSection={<Search size={13} aria-hidden />}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") go(event.shiftKey ? hit - 1 : hit + 1);
          }}
          data-testid="json-search"
        />
        {found !== null && (
          <Group gap={4} wrap="nowrap" aria-live="polite">
            <Text size="xs" data-testid="json-found">
              {found.places.length === 0
                ? "No matches"
                : `${hit + 1} of ${found.places.length}${found.isAll ? "" : " or more"}`}
            </Text>
            <ActionIcon size="sm" variant="default" aria-label="Previous match" onClick={() => go(hit - 1)}>
              <ChevronUp size={14} />
            </ActionIcon>
            <ActionIcon size="sm" variant="default" aria-label="Next match" onClick={() => go(hit + 1)}>
              <ChevronDown size={14} />
            </ActionIcon>
          </Group>
        )}
      </Group>
      <div
        ref={frame}
        className={classes["rows"]}
        role="tree"
        aria-label={label}
        tabIndex={0}
        aria-activedescendant={current >= 0 ? `${id}-${current}` : undefined}
        onKeyDown={onKeyDown}
        data-testid="json-rows"
      >
        <div role="presentation" style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index]!;
            return (
              <div
                key={item.key}
                id={`${id}-${item.index}`}
                role="treeitem"
                aria-level={row.depth + 1}
                aria-expanded={row.size === null ? undefined : open.has(row.key)}
                aria-selected={row.key === chosen}
                className={classes["jsonRow"]}
                style={{ transform: `translateY(${item.start}px)`, paddingLeft: row.depth * INDENT }}
                onClick={() => {
                  setChosen(row.key);
                  turn(row);
                }}
                data-testid="json-row"
              >
                <RowText row={row} open={open.has(row.key)} />
              </div>
            );
          })}
        </div>
      </div>
      {selected !== undefined && <Chosen row={selected} root={root} />}
    </div>
  );
}

function RowText({ row, open }: { row: Row; open: boolean }) {
  const Icon = open ? ChevronDown : ChevronRight;
  return (
    <>
      <span className={classes["fold"]}>{row.size !== null && <Icon size={13} aria-hidden />}</span>
      <span className={classes["name"]}>{row.stretch === null ? row.name : `[${row.name}]`}</span>
      {row.stretch === null && (
        <span className={classes["value"]} data-type={typeOf(row.value)}>
          {preview(row)}
        </span>
      )}
    </>
  );
}

function Chosen({ row, root }: { row: Row; root: string }) {
  const path = expressionOf(root, row.place);
  const text = () => (typeof row.value === "string" ? row.value : JSON.stringify(row.value, null, 2));
  return (
    <div className={classes["chosen"]} data-testid="json-chosen">
      <Group gap="xs" wrap="nowrap" justify="space-between">
        <Text size="xs" ff="monospace" className={classes["path"]} title={path} data-testid="json-path">
          {path}
        </Text>
        <Group gap={6} wrap="nowrap">
          <CopyTextButton text={path} label="Path" aria-label="Copy the path" testid="copy-path" />
          <CopyTextButton text={text} label="Value" aria-label="Copy the value" testid="copy-value" />
        </Group>
      </Group>
      {typeof row.value === "string" && (row.value.length > SHORT || row.value.includes("\n")) && (
        <LongText text={row.value} label="Selected text" name="value.txt" lines={8} />
      )}
    </div>
  );
}

function openAtFirst(value: Json): ReadonlySet<string> {
  let open: ReadonlySet<string> = new Set([keyOf([])]);
  for (;;) {
    const rows = rowsOf(value, "", open);
    const next = new Set([
      ...open,
      ...rows.filter((row) => row.size !== null && row.stretch === null).map((row) => row.key),
    ]);
    if (next.size === open.size || rowsOf(value, "", next).length > OPEN_AT_ONCE) return open;
    open = next;
  }
}

function target(key: string, rows: readonly Row[], current: number, open: ReadonlySet<string>): number | null {
  const row = rows[current]!;
  switch (key) {
    case "ArrowDown":
      return Math.min(rows.length - 1, current + 1);
    case "ArrowUp":
      return Math.max(0, current - 1);
    case "Home":
      return 0;
    case "End":
      return rows.length - 1;
    case "ArrowRight":
      return open.has(row.key) ? current + 1 : null;
    case "ArrowLeft": {
      for (let place = current - 1; place >= 0; place--) if (rows[place]!.depth < row.depth) return place;
      return null;
    }
    default:
      return null;
  }
}

function typeOf(value: Json): string {
  if (value === null) return "null";
  if (isExact(value)) return "number";
  return Array.isArray(value) ? "array" : typeof value;
}

function preview(row: Row): string {
  const { value, size } = row;
  if (Array.isArray(value)) return `[${size === null ? "" : count(size, "item")}]`;
  if (isHolder(value)) return `{${size === null ? "" : count(size, "field")}}`;
  if (typeof value !== "string") return String(value);
  const shown = JSON.stringify(value.slice(0, SHORT));
  return value.length > SHORT ? `${shown.slice(0, -1)}… ${value.length.toLocaleString()} characters` : shown;
}

function count(number: number, what: string): string {
  return `${number.toLocaleString()} ${what}${number === 1 ? "" : "s"}`;
}
