/** The blockers of an agent's migration, each with its fix and a button that starts it. */

import { Button, Code, Stack, Text, Title } from "@mantine/core";

import classes from "./migration.module.css";
import { useCheck, type Action, type Blocker, type Status } from "./queries.ts";

const FIXED_BY: Partial<Record<Blocker["code"], { action: Action | "check"; name: string }>> = {
  no_target: { action: "ready", name: "Set the target" },
  check_missing: { action: "check", name: "Check now" },
  check_failed: { action: "check", name: "Check again" },
  too_few_comparisons: { action: "shadow", name: "Change shadowing" },
  not_attested: { action: "ready", name: "Attest" },
};

// The text before the command.
const LEADS: Partial<Record<Blocker["code"], string>> = {
  check_failed: "Fix the agent, then run ",
  disagreement: "List the differences with ",
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
        Blockers
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
                {blocks === "shadow" ? "Blocks shadowing. " : "Blocks the cutover. "}
                {command === null ? (
                  fix
                ) : (
                  <>
                    {LEADS[code] ?? (fixed === undefined ? "" : "Use the button, or run ")}
                    <Code>{command}</Code>
                  </>
                )}
              </Text>
            </div>
            {code === "disagreement" && (
              <Button size="compact-sm" variant="default" onClick={onSeeDifferences} data-testid="see-differences">
                Show differences
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
