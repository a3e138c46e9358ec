/** The URL parameters of the run list. */

import type { operations } from "../../api/schema.d.ts";
import type { RunStatus } from "../model.ts";

export const STATUSES: readonly RunStatus[] = [
  "PENDING",
  "RUNNING",
  "WAITING",
  "PAUSED",
  "COMPENSATING",
  "COMPLETED",
  "FAILED",
  "CANCELLED",
];

export const SPANS = {
  "15m": { name: "Last 15 minutes", minutes: 15 },
  "1h": { name: "Last hour", minutes: 60 },
  "24h": { name: "Last 24 hours", minutes: 1_440 },
  "7d": { name: "Last 7 days", minutes: 10_080 },
} as const;
export type Span = keyof typeof SPANS;

export interface RunsSearch {
  /** One or more statuses, separated by commas. */
  readonly status?: string;
  readonly workflow?: string;
  readonly agent?: string;
  readonly q?: string;
  /** Labels that a run must have, as `key:value`. */
  readonly label?: readonly string[];
  /** A relative range, instead of `since` and `until`. */
  readonly last?: Span;
  readonly since?: string;
  readonly until?: string;
  /** Only child runs of this run. */
  readonly parent?: string;
  /** Whether child runs are included. */
  readonly children?: true;
}

type Query = NonNullable<operations["list_runs"]["parameters"]["query"]>;

// As the server checks it.
const LABEL = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}:[^\u0000-\u001f\u007f]{1,255}$/;

export function isLabel(text: string): boolean {
  return LABEL.test(text);
}

export function runsSearch(given: Record<string, unknown>): RunsSearch {
  const statuses = statusesOf(text(given["status"]) ?? "");
  const last = text(given["last"]);
  const [since, until] = [instant(given["since"]), instant(given["until"])];
  const labels = labelsOf(given["label"]);
  const isSpan = last !== undefined && last in SPANS;
  return {
    ...(statuses.length > 0 ? { status: statuses.join(",") } : {}),
    ...part("workflow", text(given["workflow"])),
    ...part("agent", text(given["agent"])),
    ...part("q", text(given["q"])),
    ...(labels.length > 0 ? { label: labels } : {}),
    ...(isSpan ? { last: last as Span } : { ...part("since", since), ...part("until", until) }),
    ...part("parent", text(given["parent"])),
    ...(given["children"] === true ? { children: true } : {}),
  };
}

function labelsOf(value: unknown): string[] {
  const given: unknown[] = Array.isArray(value) ? value : [value];
  return [...new Set(given.filter((each): each is string => typeof each === "string" && isLabel(each)))].sort();
}

/** The router parses texts that look like numbers: `q=4711`. */
function text(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

function instant(value: unknown): string | undefined {
  const time = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(time) ? undefined : new Date(time).toISOString();
}

function part<Name extends keyof RunsSearch>(
  name: Name,
  value: string | undefined,
): { readonly [Key in Name]?: string } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [Key in Name]?: string };
}

export function statusesOf(status: string | undefined): RunStatus[] {
  const named = (status ?? "").toUpperCase().split(",");
  return STATUSES.filter((each) => named.includes(each));
}

export function queryOf(search: RunsSearch): Query {
  const statuses = statusesOf(search.status);
  const since =
    search.last === undefined ? search.since : new Date(Date.now() - SPANS[search.last].minutes * 60_000).toISOString();
  return {
    payloads: false,
    ...(statuses.length > 0 ? { status: statuses } : {}),
    ...(search.workflow === undefined ? {} : { workflow: search.workflow }),
    ...(search.agent === undefined ? {} : { agent: search.agent }),
    ...(search.q === undefined ? {} : { q: search.q }),
    ...(search.label === undefined ? {} : { label: [...search.label] }),
    ...(since === undefined ? {} : { since }),
    ...(search.until === undefined ? {} : { until: search.until }),
    ...(search.parent === undefined ? {} : { parent: search.parent }),
    children: search.children === true || search.parent !== undefined,
  };
}

/** Sorts the fields, so that equal searches have equal texts. */
export function written(search: RunsSearch): string {
  return JSON.stringify(runsSearch({ ...search }));
}

export function isFiltered(search: RunsSearch): boolean {
  const { children: _, ...filters } = search;
  return Object.keys(filters).length > 0;
}
