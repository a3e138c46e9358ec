/** When the new side is not good enough: what is left out stays as it is. */

import { Anchor, Collapse, NumberInput, SimpleGrid, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";

import type { components } from "../api/schema.d.ts";
import type { Limits } from "./queries.ts";

export type LimitForm = { readonly [Name in keyof Limits]?: number };

interface Field {
  readonly name: keyof Limits;
  readonly label: string;
  readonly first: number | null;
  readonly min: number;
  readonly max: number;
  readonly step: number;
}

const FIELDS: readonly Field[] = [
  { name: "comparisons", label: "Comparisons before a cutover", first: 20, min: 0, max: 1_000, step: 1 },
  { name: "disagreement", label: "Share of them that may differ", first: 0.01, min: 0, max: 1, step: 0.01 },
  { name: "error_rate", label: "Share of failed calls that rolls back", first: 0.1, min: 0, max: 1, step: 0.01 },
  { name: "window", label: "Of the last so many calls", first: 50, min: 1, max: 1_000, step: 1 },
  { name: "calls", label: "Of so many calls at least", first: 10, min: 1, max: 1_000, step: 1 },
  { name: "slowdown", label: "Times the old side’s time that roll back", first: 3, min: 1, max: 1_000, step: 0.5 },
  {
    name: "slowest_ms",
    label: "Milliseconds that roll back in any case",
    first: null,
    min: 1,
    max: 86_400_000,
    step: 100,
  },
];

interface Props {
  readonly present: Limits | undefined;
  readonly value: LimitForm;
  readonly onChange: (value: LimitForm) => void;
}

export function LimitFields({ present, value, onChange }: Props) {
  const [opened, { toggle }] = useDisclosure();
  return (
    <Stack gap="xs">
      <Anchor
        component="button"
        type="button"
        size="sm"
        w="fit-content"
        onClick={toggle}
        aria-expanded={opened}
        data-testid="limits"
      >
        {opened ? "Hide the limits" : "Limits: when it is not good enough"}
      </Anchor>
      <Collapse expanded={opened}>
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="xs">
          {FIELDS.map(({ name, label, first, min, max, step }) => (
            <NumberInput
              key={name}
              size="xs"
              label={label}
              placeholder={String(present?.[name] ?? first ?? "never")}
              min={min}
              max={max}
              step={step}
              value={value[name] ?? ""}
              onChange={(number) => {
                const { [name]: _, ...rest } = value;
                onChange(typeof number === "number" ? { ...rest, [name]: number } : rest);
              }}
              data-testid={`limit-${name}`}
            />
          ))}
        </SimpleGrid>
      </Collapse>
    </Stack>
  );
}

export function limitChanges(form: LimitForm): components["schemas"]["LimitRequest"] {
  // The API takes each by its name, and leaves the others; the generated type calls those with a default required.
  return form;
}
