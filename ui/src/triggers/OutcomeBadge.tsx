/** What a firing led to: an icon and a word in its colour. */

import { CircleCheck, CircleSlash, CircleX, Filter, Hourglass, type LucideIcon } from "lucide-react";

import classes from "../app/StatusBadge.module.css";
import type { Firing } from "./queries.ts";

const APPEARANCES: Record<Firing["outcome"], { icon: LucideIcon; word: string; color: string }> = {
  started: { icon: CircleCheck, word: "Started", color: "var(--status-completed)" },
  queued: { icon: Hourglass, word: "Queued", color: "var(--status-waiting)" },
  skipped: { icon: CircleSlash, word: "Skipped", color: "var(--status-skipped)" },
  missed: { icon: CircleSlash, word: "Missed", color: "var(--status-waiting)" },
  filtered: { icon: Filter, word: "Filtered", color: "var(--status-skipped)" },
  failed: { icon: CircleX, word: "Failed", color: "var(--status-failed)" },
};

export function OutcomeBadge({ outcome }: { outcome: Firing["outcome"] }) {
  const { icon: Icon, word, color } = APPEARANCES[outcome];
  return (
    <span className={classes["badge"]} style={{ color }} data-testid="outcome" data-outcome={outcome}>
      <Icon size={15} aria-hidden />
      {word}
    </span>
  );
}
