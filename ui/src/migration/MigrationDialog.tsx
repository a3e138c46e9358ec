/** The dialog of a migration action: explains it, asks for its parameters, and runs it. */

import { Button, Checkbox, Group, List, Modal, NumberInput, Stack, Text, Textarea } from "@mantine/core";
import { useState } from "react";

import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { toast } from "../app/toasts.ts";
import { LimitFields, limitChanges, type LimitForm } from "./LimitFields.tsx";
import { useMigrationAction, type Action, type Status, type ActionRequest } from "./queries.ts";
import { useUserName, UserNameField } from "./UserNameField.tsx";
import { TargetFields, type TargetForm } from "./TargetFields.tsx";

interface ActionTexts {
  readonly title: (agent: string) => string;
  readonly text: string;
  readonly button: string;
  /** The toast after success. */
  readonly done: (agent: string) => string;
}

const ACTION_TEXTS: Record<Action, ActionTexts> = {
  ready: {
    title: (agent) => `Attest that ${agent} is ready`,
    text: "Confirm what cannot be checked automatically: the new version is deployed and documented, and its users are informed. A cutover requires this attestation.",
    button: "Attest",
    done: (agent) => `Attested that ${agent} is ready.`,
  },
  shadow: {
    title: (agent) => `Shadow ${agent}`,
    text: "A share of the calls is also sent to the target. Runs do not wait for the target or use its output. The outputs are compared.",
    button: "Start shadowing",
    done: (agent) => `Started shadowing ${agent}.`,
  },
  canary: {
    title: (agent) => `Start a canary for ${agent}`,
    text: "A share of new runs calls the target. If the target fails too often or gets too slow, the agent is rolled back automatically.",
    button: "Start canary",
    done: (agent) => `Started a canary for ${agent}.`,
  },
  cutover: {
    title: (agent) => `Cut over ${agent}?`,
    text: "The target is checked once more. Then all new runs call the target. Active runs keep their route, so keep the source running.",
    button: "Cut over",
    done: (agent) => `Cut over ${agent}.`,
  },
  rollback: {
    title: (agent) => `Roll back ${agent}?`,
    text: "All new runs call the source again. The attestation is withdrawn.",
    button: "Roll back",
    done: (agent) => `Rolled back ${agent}.`,
  },
  finish: {
    title: (agent) => `Finish the migration of ${agent}?`,
    text: "The agent is registered with its target, and the source is removed. You can undo this only with another migration.",
    button: "Finish",
    done: (agent) => `Finished the migration of ${agent}.`,
  },
};

export function MigrationDialog({ action, status, onClose }: { action: Action; status: Status; onClose: () => void }) {
  const { title, text, button, done } = ACTION_TEXTS[action];
  const state = status.migration;
  const move = useMigrationAction(status.agent);
  const [who, setWho] = useUserName();
  const [why, setWhy] = useState("");
  const [note, setNote] = useState("");
  const [force, setForce] = useState(false);
  const [percent, setPercent] = useState<number | string>(
    state?.stage === action ? state.percent : action === "shadow" ? 100 : 10,
  );
  const [target, setTarget] = useState<TargetForm>({ url: "", protocol: null });
  const [limits, setLimits] = useState<LimitForm>({});
  const isTrial = action === "shadow" || action === "canary";
  const aims = isTrial || action === "ready";
  const against = action === "cutover" ? status.blockers.filter(({ blocks }) => blocks === "cutover") : [];
  const needsWhy = action === "rollback" || force;
  const isComplete =
    (!needsWhy || why.trim() !== "") &&
    (action !== "ready" || note.trim() !== "") &&
    (!isTrial || (typeof percent === "number" && percent > 0 && percent <= 100));

  const wish = (): ActionRequest => {
    const asked = { why, who: who.trim() === "" ? null : who };
    const url = target.url.trim() === "" ? null : target.url.trim();
    const aim = { url, protocol: target.protocol, protocol_config: null };
    // An attestation includes the target only if there is none yet or if it changes.
    const names = state?.target == null || state.stage === "finished" || url !== null || target.protocol !== null;
    switch (action) {
      case "ready":
        return { action, body: { ...asked, note, target: names ? aim : null } };
      case "shadow":
      case "canary":
        return { action, body: { ...asked, percent: Number(percent), target: aim, limits: limitChanges(limits) } };
      case "cutover":
        return { action, body: { ...asked, force } };
      case "rollback":
        return { action, body: { ...asked, force } };
      case "finish":
        return { action, body: asked };
    }
  };
  const submit = () =>
    move.mutate(wish(), {
      onSuccess: () => {
        toast("done", done(status.agent));
        onClose();
      },
    });

  return (
    <Modal
      opened
      onClose={onClose}
      title={title(status.agent)}
      size="lg"
      closeButtonProps={{ "aria-label": "Close" }}
      transitionProps={{ duration: 0 }}
    >
      <form
        data-testid={`dialog-${action}`}
        onSubmit={(event) => {
          event.preventDefault();
          if (isComplete) submit();
        }}
      >
        <Stack gap="sm">
          <Text size="sm">{text}</Text>
          {against.length > 0 && (
            <div data-testid="against">
              <Text size="sm" fw={600}>
                These blockers prevent a cutover:
              </Text>
              <List size="sm">
                {against.map(({ code, message }) => (
                  <List.Item key={code}>{message}</List.Item>
                ))}
              </List>
            </div>
          )}
          {action === "ready" && (
            <Textarea
              label="Note"
              required
              autosize
              minRows={2}
              maxLength={2000}
              value={note}
              onChange={(event) => setNote(event.currentTarget.value)}
              data-autofocus
              data-testid="note"
            />
          )}
          {isTrial && (
            <NumberInput
              label={action === "shadow" ? "Share of runs to shadow" : "Share of runs that call the target"}
              required
              min={0.01}
              max={100}
              suffix="%"
              allowNegative={false}
              decimalScale={2}
              clampBehavior="none"
              value={percent}
              onChange={setPercent}
              data-autofocus
              data-testid="percent"
              error={
                typeof percent === "number" && percent > 0 && percent <= 100
                  ? null
                  : "Enter a number greater than 0 and at most 100."
              }
            />
          )}
          {aims && <TargetFields status={status} value={target} onChange={setTarget} />}
          {isTrial && <LimitFields present={state?.limits} value={limits} onChange={setLimits} />}
          {against.length > 0 && (
            <Checkbox
              label="Override the blockers. The history records who did it and why."
              checked={force}
              onChange={(event) => setForce(event.currentTarget.checked)}
              data-testid="force"
            />
          )}
          {action === "rollback" && (
            <Checkbox
              label="Roll back even if the source fails its check."
              checked={force}
              onChange={(event) => setForce(event.currentTarget.checked)}
              data-testid="force"
            />
          )}
          {action !== "ready" && (
            <Textarea
              label="Reason"
              description="Recorded in the history."
              required={needsWhy}
              autosize
              minRows={2}
              maxLength={2000}
              value={why}
              onChange={(event) => setWhy(event.currentTarget.value)}
              data-testid="why"
              {...(isTrial ? {} : { "data-autofocus": true })}
            />
          )}
          <UserNameField value={who} onChange={setWho} />
          {move.error !== null && <ProblemPanel error={move.error} />}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button
              type="submit"
              loading={move.isPending}
              disabled={!isComplete || (against.length > 0 && !force && !onlyNeedsCheck(against))}
              {...(action === "rollback" || action === "finish" ? { color: "red" } : {})}
              data-testid="confirm"
            >
              {button}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

/** A cutover checks the target itself, so a missing or failed check does not prevent it. */
function onlyNeedsCheck(against: Status["blockers"]): boolean {
  return against.every(({ code }) => code === "check_missing" || code === "check_failed");
}
