/** The findings of the server. Each links to its position in the text. */

import { Group, Stack, Text, UnstyledButton } from "@mantine/core";
import { CircleCheck, CircleDashed, CircleX, TriangleAlert } from "lucide-react";

import { NoResponseError } from "../../api/problem.ts";
import type { Finding } from "../queries.ts";
import classes from "../workflows.module.css";
import type { Checked } from "./validation.ts";

export function FindingList({ checked, onGo }: { checked: Checked; onGo: (finding: Finding) => void }) {
  const { is, validation, error } = checked;
  if (is === "unanswered") {
    return (
      <Group gap={6} role="status" data-testid="not-checked">
        <CircleDashed size={16} aria-hidden />
        <Text size="sm">
          {error === null || error instanceof NoResponseError
            ? "Not validated, because Trunkline is not responding."
            : "Not validated."}
        </Text>
      </Group>
    );
  }
  const { errors, warnings } = validation ?? NOTHING;
  if (errors.length === 0 && warnings.length === 0) {
    return is === "current" ? (
      <Group gap={6} role="status" data-testid="valid" c="var(--status-completed)">
        <CircleCheck size={16} aria-hidden />
        <Text size="sm">The workflow is valid.</Text>
      </Group>
    ) : (
      <Group gap={6} c="dimmed" data-testid="checking">
        <CircleDashed size={16} aria-hidden />
        <Text size="sm">Validating…</Text>
      </Group>
    );
  }
  return (
    <Stack gap={4}>
      {is === "current" ? (
        <Text size="sm" role="status" data-testid="finding-count">
          {counted(errors.length, warnings.length)}
        </Text>
      ) : (
        <Text size="sm" c="dimmed" data-testid="checking">
          Validating…
        </Text>
      )}
      <ul className={classes["findings"]} aria-label="Findings" data-testid="findings">
        {errors.map((finding, place) => (
          <Line key={`e${place}`} kind="error" finding={finding} onGo={onGo} />
        ))}
        {warnings.map((finding, place) => (
          <Line key={`w${place}`} kind="warning" finding={finding} onGo={onGo} />
        ))}
      </ul>
    </Stack>
  );
}

const NOTHING: { readonly errors: readonly Finding[]; readonly warnings: readonly Finding[] } = {
  errors: [],
  warnings: [],
};

function Line({
  kind,
  finding,
  onGo,
}: {
  kind: "error" | "warning";
  finding: Finding;
  onGo: (finding: Finding) => void;
}) {
  const Icon = kind === "error" ? CircleX : TriangleAlert;
  const color = kind === "error" ? "var(--status-failed)" : "var(--status-waiting)";
  return (
    <li>
      <UnstyledButton className={classes["finding"]} onClick={() => onGo(finding)} data-testid={kind}>
        <Icon size={16} color={color} aria-label={kind === "error" ? "Error" : "Warning"} />
        <span className={classes["place"]}>{finding.line === null ? "" : `line ${finding.line}`}</span>
        <span>{finding.message}</span>
      </UnstyledButton>
    </li>
  );
}

function counted(errors: number, warnings: number): string {
  const counts = [
    ...(errors > 0 ? [`${errors} ${errors === 1 ? "error" : "errors"}`] : []),
    ...(warnings > 0 ? [`${warnings} ${warnings === 1 ? "warning" : "warnings"}`] : []),
  ];
  return `${counts.join(", ")}.${errors > 0 ? " Fix the errors to save." : " You can save."}`;
}
