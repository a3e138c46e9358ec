/** The number of items per status. Each count is a filter toggle. */

import { Group, Text } from "@mantine/core";

import { StatusToggle } from "../../app/StatusToggle.tsx";
import type { StepModel } from "../model.ts";
import { LISTED, type Listed } from "./itemsSearch.ts";
import type { Step } from "./useDetails.ts";

export type Counts = Readonly<Record<Listed | "pending", number>>;

/** For a running step, the history is newer than the last response. */
export function countsIn(step: Step, moving: StepModel["counts"]): Counts | null {
  if (moving === null) return step.items ?? null;
  const listed = Object.entries(LISTED).map(([name, statuses]) => [
    name,
    statuses.reduce((sum, status) => sum + moving[status], 0),
  ]);
  return { pending: moving.PENDING, ...(Object.fromEntries(listed) as Record<Listed, number>) };
}

export function ItemCounts({
  counts,
  shown,
  onShow,
}: {
  counts: Counts;
  shown: Listed | null;
  onShow: (shown: Listed | null) => void;
}) {
  const names = (Object.keys(LISTED) as Listed[]).filter((name) => counts[name] > 0 || name === shown);
  return (
    <Group gap={6} mb="xs" role="group" aria-label="Filter items by status">
      {names.map((name) => (
        <StatusToggle
          key={name}
          status={LISTED[name][0]}
          isPressed={name === shown}
          onPress={() => onShow(name === shown ? null : name)}
          testId={`items-${name}`}
        >
          {counts[name].toLocaleString()} {name}
        </StatusToggle>
      ))}
      {counts.pending > 0 && (
        <Text size="xs" c="dimmed">
          {counts.pending.toLocaleString()} pending
        </Text>
      )}
    </Group>
  );
}
