/** The limits for the target. Empty fields keep their value. */

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
  { name: "comparisons", label: "Required comparisons before a cutover", first: 20, min: 0, max: 1_000, step: 1 },
  { name: "disagreement", label: "Max share of differing comparisons", first: 0.01, min: 0, max: 1, step: 0.01 },
  { name: "error_rate", label: "Roll back at this share of failed calls", first: 0.1, min: 0, max: 1, step: 0.01 },
  { name: "window", label: "Calls in the sliding window", first: 50, min: 1, max: 1_000, step: 1 },
  { name: "calls", label: "Min calls before a rollback", first: 10, min: 1, max: 1_000, step: 1 },
  {
    name: "slowdown",
    label: "Roll back at this slowdown (times the source's latency)",
    first: 3,
    min: 1,
    max: 1_000,
    step: 0.5,
  },
  {
    name: "slowest_ms",
    label: "Roll back above this latency (ms)",
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
        {opened ? "Hide limits" : "Show limits"}
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
  // The API accepts a partial object, but the generated type marks fields with a default as required.
  return form;
}
