/** The labels of blockers and verdicts. */

import type { Blocker, Verdict } from "./queries.ts";

export const BLOCKERS: Record<Blocker["code"], string> = {
  no_target: "No target set",
  protocol_unknown: "Protocol unknown",
  check_missing: "Target not checked",
  check_failed: "Target check failed",
  too_few_comparisons: "Too few comparisons",
  disagreement: "Outputs differ",
  not_attested: "Not attested",
  not_repeatable: "Not repeatable",
};

export const VERDICTS: Record<Verdict, string> = {
  agree: "Agree",
  differ: "Differ",
  new_failed: "Target failed",
  old_failed: "Source failed",
  both_failed: "Both failed",
};

export const VERDICT_ORDER = [
  "differ",
  "new_failed",
  "agree",
  "old_failed",
  "both_failed",
] as const satisfies readonly Verdict[];

export function percentOf(part: number, whole: number): string {
  if (whole === 0) return "0%";
  const percent = (part / whole) * 100;
  return `${percent < 10 ? Number(percent.toFixed(1)) : Math.round(percent)}%`;
}

export function pluralized(number: number, one: string, more = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : more}`;
}
