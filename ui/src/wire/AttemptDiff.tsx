/** Two attempts of a step side by side: what was asked, what was answered, what came of it. */

import { Group, SegmentedControl, Select, Stack, Text } from "@mantine/core";
import { useMemo, useState } from "react";

import type { components } from "../api/schema.d.ts";
import { CodeDiff } from "../code/CodeDiff.tsx";
import { differing, type Part, PARTS } from "./attemptText.ts";
import type { Exchange } from "./exchange.ts";
import classes from "./wire.module.css";

export default function AttemptDiff({
  exchanges,
  attempts,
  chosen,
  step,
}: {
  exchanges: readonly Exchange[];
  attempts: readonly number[];
  chosen: number | null;
  step: components["schemas"]["Step"] | null;
}) {
  const last = attempts[attempts.length - 1]!;
  const [before, setBefore] = useState(() => (chosen !== null && chosen !== last ? chosen : attempts[attempts.length - 2]!));
  const [after, setAfter] = useState(last);
  const [part, setPart] = useState<Part>("response");
  const texts = useMemo(() => differing(exchanges, part, before, after, step), [exchanges, part, before, after, step]);
  return (
    <Stack gap="xs" data-testid="attempt-diff">
      <Group gap="xs">
        <Chooser label="Attempt on the left" attempts={attempts} value={before} onChange={setBefore} />
        <Text size="sm">and</Text>
        <Chooser label="Attempt on the right" attempts={attempts} value={after} onChange={setAfter} />
        <SegmentedControl
          size="xs"
          aria-label="What is compared"
          data={[...PARTS]}
          value={part}
          onChange={(value) => setPart(value as Part)}
        />
      </Group>
      {texts.before === texts.after && <Text size="sm" data-testid="no-difference">They are the same.</Text>}
      <div className={classes["diff"]}>
        <CodeDiff
          before={{ text: texts.before, label: `Attempt ${before}` }}
          after={{ text: texts.after, label: `Attempt ${after}` }}
          language="text"
        />
      </div>
    </Stack>
  );
}

function Chooser({
  label,
  attempts,
  value,
  onChange,
}: {
  label: string;
  attempts: readonly number[];
  value: number;
  onChange: (attempt: number) => void;
}) {
  return (
    <Select
      size="xs"
      w={120}
      aria-label={label}
      data={attempts.map((attempt) => ({ value: String(attempt), label: `Attempt ${attempt}` }))}
      value={String(value)}
      onChange={(chosen) => chosen !== null && onChange(Number(chosen))}
      allowDeselect={false}
    />
  );
}
