/** Two attempts of a step side by side: requests, responses or results. */

import { Group, SegmentedControl, Select, Stack, Text } from "@mantine/core";

import type { components } from "../api/schema.d.ts";
import { Loading } from "../app/Loading.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { CodeDiff } from "../code/CodeDiff.tsx";
import { missingAttempt } from "../runs/attempts.ts";
import { attemptText, type Part, PARTS } from "./attemptText.ts";
import type { Pair } from "./search.ts";
import { type Asked, useExchanges } from "./useExchanges.ts";
import classes from "./wire.module.css";

type Step = components["schemas"]["Step"];

interface Compared {
  readonly asked: Asked;
  readonly step: Step;
  readonly pair: Pair;
  readonly part: Part;
  readonly onCompare: (pair: Pair, part: Part) => void;
}

export default function AttemptDiff({ asked, step, pair, part, onCompare }: Compared) {
  const missing = missingAttempt(step, pair.before) ?? missingAttempt(step, pair.after);
  return (
    <Stack gap="xs" data-testid="attempt-diff">
      <Group gap="xs">
        <Chooser
          label="Left attempt"
          step={step}
          value={pair.before}
          onChange={(before) => onCompare({ ...pair, before }, part)}
        />
        <Text size="sm">and</Text>
        <Chooser
          label="Right attempt"
          step={step}
          value={pair.after}
          onChange={(after) => onCompare({ ...pair, after }, part)}
        />
        <SegmentedControl
          size="xs"
          aria-label="Compare"
          data={[...PARTS]}
          value={part}
          onChange={(value) => onCompare(pair, value)}
        />
      </Group>
      {missing === null ? (
        <Difference asked={asked} step={step} pair={pair} part={part} />
      ) : (
        <Text size="sm" data-testid="no-attempt">
          {missing}
        </Text>
      )}
    </Stack>
  );
}

function Difference({ asked, step, pair, part }: Omit<Compared, "onCompare">) {
  const before = useExchanges({ ...asked, attempt: pair.before });
  const after = useExchanges({ ...asked, attempt: pair.after });
  const failed = [before, after].find(({ error }) => error !== null);
  if (failed !== undefined) return <ProblemPanel error={failed.error} again={() => void failed.refetch()} />;
  if (before.data === undefined || after.data === undefined) return <Loading />;
  const texts = {
    before: attemptText(before.exchanges, part, pair.before, step),
    after: attemptText(after.exchanges, part, pair.after, step),
  };
  return (
    <>
      {texts.before === texts.after && (
        <Text size="sm" data-testid="no-difference">
          No differences.
        </Text>
      )}
      {(before.hasNextPage || after.hasNextPage) && (
        <Text size="sm">
          Only the first exchanges are compared: {before.exchanges.length} on the left, {after.exchanges.length} on the
          right. Download the HAR file for all of them.
        </Text>
      )}
      <div className={classes["diff"]}>
        <CodeDiff
          before={{ text: texts.before, label: `Attempt ${pair.before}` }}
          after={{ text: texts.after, label: `Attempt ${pair.after}` }}
          language="text"
        />
      </div>
    </>
  );
}

function Chooser({
  label,
  step,
  value,
  onChange,
}: {
  label: string;
  step: Step;
  value: number;
  onChange: (attempt: number) => void;
}) {
  const attempts = Array.from({ length: step.attempts }, (_, place) => place + 1);
  return (
    <Select
      size="xs"
      w={120}
      aria-label={label}
      data={attempts.map((attempt) => ({ value: String(attempt), label: `Attempt ${attempt}` }))}
      value={attempts.includes(value) ? String(value) : null}
      placeholder={`Attempt ${value}`}
      onChange={(chosen) => chosen !== null && onChange(Number(chosen))}
      allowDeselect={false}
    />
  );
}
