/** Blockers and verdicts in a few words. */

import type { Blocker, Verdict } from "./queries.ts";

export const BLOCKERS: Record<Blocker["code"], string> = {
  no_target: "No new side named",
  protocol_unknown: "Not known what it speaks",
  check_missing: "New side not checked",
  check_failed: "Check of the new side fails",
  too_few_comparisons: "Too few comparisons",
  disagreement: "The sides disagree",
  not_attested: "Not attested",
  not_repeatable: "Not safe to call twice",
};

export const VERDICTS: Record<Verdict, string> = {
  agree: "Agree",
  differ: "Differ",
  new_failed: "New side failed",
  old_failed: "Old side failed",
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
  if (whole === 0) return "0 %";
  const percent = (part / whole) * 100;
  return `${percent < 10 ? Number(percent.toFixed(1)) : Math.round(percent)} %`;
}

export function many(number: number, one: string, more = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : more}`;
}
