/** What is in the way of an agent's migration, each with its fix and the button that makes it. */

import { Button, Code, Stack, Text, Title } from "@mantine/core";

import classes from "./migration.module.css";
import { useCheck, type Action, type Blocker, type Status } from "./queries.ts";

const FIXED_BY: Partial<Record<Blocker["code"], { action: Action | "check"; name: string }>> = {
  no_target: { action: "ready", name: "Name the new side" },
  check_missing: { action: "check", name: "Check now" },
  check_failed: { action: "check", name: "Check again" },
  too_few_comparisons: { action: "shadow", name: "Shadow more" },
  not_attested: { action: "ready", name: "Attest" },
};

// What is said before the command.
const LEADS: Partial<Record<Blocker["code"], string>> = {
  check_failed: "Correct the agent, then: ",
  disagreement: "See how: ",
};

interface Props {
  readonly status: Status;
  readonly onAct: (action: Action) => void;
  readonly onSeeDifferences: () => void;
}

export function BlockerList({ status, onAct, onSeeDifferences }: Props) {
  const check = useCheck(status.agent);
  if (status.blockers.length === 0) return null;
  return (
    <Stack gap={6} data-testid="blockers">
      <Title order={2} size="h5">
        In the way
      </Title>
      {status.blockers.map(({ code, message, fix, fix_command: command, blocks }) => {
        const fixed = FIXED_BY[code];
        return (
          <div key={code} className={classes["blocker"]} data-testid="blocker" data-code={code}>
            <div className={classes["blockerText"]}>
              <Text size="sm" fw={600}>
                {message}
              </Text>
              <Text size="sm" c="dimmed">
                {blocks === "shadow" ? "Blocks a shadow. " : "Blocks the cutover. "}
                {command === null ? (
                  fix
                ) : (
                  <>
                    {LEADS[code] ?? (fixed === undefined ? "" : "Here, or with ")}
                    <Code>{command}</Code>
                  </>
                )}
              </Text>
            </div>
            {code === "disagreement" && (
              <Button size="compact-sm" variant="default" onClick={onSeeDifferences} data-testid="see-differences">
                See the differences
              </Button>
            )}
            {fixed !== undefined && (
              <Button
                size="compact-sm"
                variant="default"
                loading={fixed.action === "check" && check.isPending}
                onClick={() => (fixed.action === "check" ? check.mutate() : onAct(fixed.action))}
                data-testid={`fix-${code}`}
              >
                {fixed.name}
              </Button>
            )}
          </div>
        );
      })}
    </Stack>
  );
}
