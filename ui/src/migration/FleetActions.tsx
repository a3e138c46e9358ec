/** Actions for all agents at once, and their results. */

import { Button, Checkbox, Group, List, Menu, Modal, Stack, Text, Textarea } from "@mantine/core";
import { ChevronDown, CircleCheck, Flag, Undo2, type LucideIcon } from "lucide-react";
import { useState } from "react";

import { usePermission, type Role } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { useFleetAction, type Entry, type FleetAction, type Outcome, type Stage } from "./queries.ts";
import { stageOf } from "./stages.ts";
import { pluralized } from "./labels.ts";
import { useUserName, UserNameField } from "./UserNameField.tsx";

interface FleetActionTexts {
  readonly name: string;
  readonly icon: LucideIcon;
  readonly role: Role;
  /** The action applies to agents in these stages. */
  readonly stages: readonly Stage[];
  readonly none: string;
  readonly text: string;
}

const ACTION_TEXTS: Record<FleetAction, FleetActionTexts> = {
  cutover: {
    name: "Cut over all",
    icon: CircleCheck,
    role: "admin",
    stages: ["planned", "shadow", "canary", "rolled_back"],
    none: "No agents to cut over.",
    text: "Checks and cuts over every agent that uses Simple A2A or has an unfinished migration. If one agent is not ready, none is cut over.",
  },
  rollback: {
    name: "Roll back all",
    icon: Undo2,
    role: "operator",
    stages: ["shadow", "canary", "cut_over"],
    none: "No agents to roll back.",
    text: "Rolls back every agent whose migration is not finished. New runs call the source again.",
  },
  finish: {
    name: "Finish all",
    icon: Flag,
    role: "admin",
    stages: ["cut_over"],
    none: "No agents are cut over.",
    text: "Registers every agent that was cut over with its target, and removes the source. Agents with unfinished runs from before the cutover are skipped.",
  },
};

const ACTIONS = ["cutover", "rollback", "finish"] as const;

export function FleetActions({ entries }: { entries: readonly Entry[] }) {
  const [action, setAction] = useState<FleetAction | null>(null);
  const may: Record<Role, ReturnType<typeof usePermission>> = {
    caller: usePermission("caller"),
    viewer: usePermission("viewer"),
    operator: usePermission("operator"),
    admin: usePermission("admin"),
  };
  const meant = (each: FleetAction) =>
    entries.filter((entry) => ACTION_TEXTS[each].stages.includes(stageOf(entry) ?? "finished"));
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
            const { name, icon: Icon, role, none } = ACTION_TEXTS[each];
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
  const { name, text } = ACTION_TEXTS[action];
  const move = useFleetAction();
  const [who, setWho] = useUserName();
  const [why, setWhy] = useState("");
  const [force, setForce] = useState(false);
  // Fixed when the dialog opens: the action changes the stages.
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
              {pluralized(asked.length, "agent")}: {asked.map(({ agent }) => agent).join(", ")}
            </Text>
            {action === "cutover" && (
              <Checkbox
                label="Override blockers where possible"
                checked={force}
                onChange={(event) => setForce(event.currentTarget.checked)}
                data-testid="force"
              />
            )}
            <Textarea
              label="Reason"
              description="Recorded in the history."
              required={needsWhy}
              autosize
              minRows={2}
              maxLength={2000}
              value={why}
              onChange={(event) => setWhy(event.currentTarget.value)}
              data-autofocus
              data-testid="why"
            />
            <UserNameField value={who} onChange={setWho} />
            {move.error !== null && <ProblemPanel error={move.error} />}
            <Group justify="flex-end" gap="sm">
              <Button variant="default" onClick={onClose}>
                Cancel
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
          ? "No agents changed."
          : `${pluralized(outcome.changed.length, "agent")} changed: ${outcome.changed.map(({ agent }) => agent).join(", ")}`}
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
