/** Which way a graph runs: as it fits best, or as the reader likes it; remembered for all graphs. */

import { ActionIcon, Group, Tooltip } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { MoveDown, MoveRight, WandSparkles } from "lucide-react";

import type { Direction } from "./layout.ts";

/** Null: whichever shows the graph larger. */
export function useDirection() {
  return useLocalStorage<Direction | null>({
    key: "trunkline.graph.direction",
    defaultValue: null,
    getInitialValueInEffect: false,
  });
}

const CHOICES = [
  { value: null, name: "Direction that fits best", icon: WandSparkles, id: "auto" },
  { value: "RIGHT", name: "From left to right", icon: MoveRight, id: "right" },
  { value: "DOWN", name: "From top to bottom", icon: MoveDown, id: "down" },
] as const;

export function DirectionSwitch({
  value,
  onChange,
}: {
  value: Direction | null;
  onChange: (value: Direction | null) => void;
}) {
  return (
    <Group gap={4} wrap="nowrap" role="group" aria-label="Direction of the graph">
      {CHOICES.map(({ value: choice, name, icon: Icon, id }) => (
        <Tooltip key={id} label={name} openDelay={400}>
          <ActionIcon
            variant={choice === value ? "filled" : "default"}
            size={26}
            aria-label={name}
            aria-pressed={choice === value}
            data-testid={`direction-${id}`}
            onClick={() => onChange(choice)}
          >
            <Icon size={15} aria-hidden />
          </ActionIcon>
        </Tooltip>
      ))}
    </Group>
  );
}
