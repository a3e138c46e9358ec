/** The direction of graphs: automatic or chosen by the user; remembered for all graphs. */

import { ActionIcon, Group, Tooltip } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { MoveDown, MoveRight, WandSparkles } from "lucide-react";

import type { Direction } from "./layout.ts";

/** Null: the direction that shows the graph larger. */
export function useDirection() {
  return useLocalStorage<Direction | null>({
    key: "trunkline.graph.direction",
    defaultValue: null,
    getInitialValueInEffect: false,
  });
}

const CHOICES = [
  { value: null, name: "Automatic direction", icon: WandSparkles, id: "auto" },
  { value: "RIGHT", name: "Left to right", icon: MoveRight, id: "right" },
  { value: "DOWN", name: "Top to bottom", icon: MoveDown, id: "down" },
] as const;

export function DirectionSwitch({
  value,
  onChange,
}: {
  value: Direction | null;
  onChange: (value: Direction | null) => void;
}) {
  return (
    <Group gap={4} wrap="nowrap" role="group" aria-label="Graph direction">
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
