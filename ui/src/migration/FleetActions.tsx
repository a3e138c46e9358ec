/** What can be done with all agents at once, and what became of each. */

import { Button, Checkbox, Group, List, Menu, Modal, Stack, Text, Textarea } from "@mantine/core";
import { ChevronDown, CircleCheck, Flag, Undo2, type LucideIcon } from "lucide-react";
import { useState } from "react";

import { useMay, type Role } from "../app/access.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { useFleetMove, type Entry, type FleetAction, type Outcome, type Stage } from "./queries.ts";
import { stageOf } from "./stages.ts";
import { many } from "./words.ts";
import { useRequester, RequesterField } from "./Requester.tsx";

interface Told {
  readonly name: string;
  readonly icon: LucideIcon;
  readonly role: Role;
  /** Those it means. */
  readonly stages: readonly Stage[];
  readonly none: string;
  readonly text: string;
}

const TOLD: Record<FleetAction, Told> = {
  cutover: {
    name: "Cut all over",
    icon: CircleCheck,
    role: "admin",
    stages: ["planned", "shadow", "canary", "rolled_back"],
    none: "There is no agent to cut over.",
    text: "Every agent that speaks Simple A2A or is in the middle of a migration is checked and cut over: all of them, or, if one is not ready, none.",
  },
  rollback: {
    name: "Roll all back",
    icon: Undo2,
    role: "operator",
    stages: ["shadow", "canary", "cut_over"],
    none: "No run calls a new side.",
    text: "Every agent that still has an old side goes back to it: runs that begin from now on call it again. Those whose migration is finished are left alone.",
  },
  finish: {
    name: "Finish all",
    icon: Flag,
    role: "admin",
    stages: ["cut_over"],
    none: "No agent has been cut over.",
    text: "Every agent that has been cut over is registered as its new side; the old sides are given up. Those with unfinished runs of before have to wait.",
  },
};

const ACTIONS = ["cutover", "rollback", "finish"] as const;

export function FleetActions({ entries }: { entries: readonly Entry[] }) {
  const [action, setAction] = useState<FleetAction | null>(null);
  const may: Record<Role, ReturnType<typeof useMay>> = {
    viewer: useMay("viewer"),
    operator: useMay("operator"),
    admin: useMay("admin"),
  };
  const meant = (each: FleetAction) =>
    entries.filter((entry) => TOLD[each].stages.includes(stageOf(entry) ?? "finished"));
  return (
    <>
      <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
        <Menu.Target>
          <Button size="xs" variant="default" rightSection={<ChevronDown size={14} aria-hidden />} data-testid="fleet">
            All agents
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {ACTIONS.map((each) => {
            const { name, icon: Icon, role, none } = TOLD[each];
            const allowed = may[role];
            const refused = !allowed.allowed ? allowed.reason : meant(each).length === 0 ? none : null;
            return (
              <Menu.Item
                key={each}
                leftSection={<Icon size={14} aria-hidden />}
                disabled={refused !== null}
                onClick={() => setAction(each)}
                data-testid={`fleet-${each}`}
              >
                {name}
                {refused !== null && (
                  <Text size="xs" c="dimmed">
                    {refused}
                  </Text>
                )}
              </Menu.Item>
            );
          })}
        </Menu.Dropdown>
      </Menu>
      {action !== null && (
        <FleetDialog key={action} action={action} meant={meant(action)} onClose={() => setAction(null)} />
      )}
    </>
  );
}

function FleetDialog({
  action,
  meant,
  onClose,
}: {
  action: FleetAction;
  meant: readonly Entry[];
  onClose: () => void;
}) {
  const { name, text } = TOLD[action];
  const move = useFleetMove();
  const [who, setWho] = useRequester();
  const [why, setWhy] = useState("");
  const [force, setForce] = useState(false);
  // As many as it was asked for: afterwards they stand elsewhere.
  const [asked] = useState(meant);
  const needsWhy = action === "rollback" || force;
  return (
    <Modal
      opened
      onClose={onClose}
      title={`${name}?`}
      size="lg"
      closeButtonProps={{ "aria-label": "Close" }}
      transitionProps={{ duration: 0 }}
    >
      {move.isSuccess ? (
        <FleetOutcome outcome={move.data} onClose={onClose} />
      ) : (
        <form
          data-testid={`fleet-dialog-${action}`}
          onSubmit={(event) => {
            event.preventDefault();
            move.mutate({ action, why, who: who.trim() === "" ? null : who, force });
          }}
        >
          <Stack gap="sm">
            <Text size="sm">{text}</Text>
            <Text size="sm" fw={600} data-testid="meant">
              {many(asked.length, "agent")}: {asked.map(({ agent }) => agent).join(", ")}
            </Text>
            {action === "cutover" && (
              <Checkbox
                label="Overrule what is in the way, where that is possible"
                checked={force}
                onChange={(event) => setForce(event.currentTarget.checked)}
                data-testid="force"
              />
            )}
            <Textarea
              label="Why"
              description="For those who read it later."
              required={needsWhy}
              autosize
              minRows={2}
              maxLength={2000}
              value={why}
              onChange={(event) => setWhy(event.currentTarget.value)}
              data-autofocus
              data-testid="why"
            />
            <RequesterField value={who} onChange={setWho} />
            {move.error !== null && <ProblemPanel error={move.error} />}
            <Group justify="flex-end" gap="sm">
              <Button variant="default" onClick={onClose}>
                Leave them as they are
              </Button>
              <Button
                type="submit"
                loading={move.isPending}
                disabled={needsWhy && why.trim() === ""}
                {...(action === "cutover" ? {} : { color: "red" })}
                data-testid="confirm"
              >
                {name} ({asked.length})
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Modal>
  );
}

function FleetOutcome({ outcome, onClose }: { outcome: Outcome; onClose: () => void }) {
  return (
    <Stack gap="sm" data-testid="fleet-outcome">
      <Text size="sm" fw={600}>
        {outcome.changed.length === 0
          ? "Nothing has changed."
          : `${many(outcome.changed.length, "agent")} changed: ${outcome.changed.map(({ agent }) => agent).join(", ")}`}
      </Text>
      {[...outcome.refused, ...outcome.left_alone].length > 0 && (
        <List size="sm">
          {[...outcome.refused, ...outcome.left_alone].map(({ agent, message, fix }) => (
            <List.Item key={agent}>
              <strong>{agent}</strong>: {message} {fix}
            </List.Item>
          ))}
        </List>
      )}
      <Group justify="flex-end">
        <Button onClick={onClose} data-autofocus>
          Close
        </Button>
      </Group>
    </Stack>
  );
}
