/** Asks what an action needs to know, says what it will do, and has it done. */

import { Button, Checkbox, Group, List, Modal, NumberInput, Stack, Text, Textarea } from "@mantine/core";
import { useState } from "react";

import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { toast } from "../app/toasts.ts";
import { LimitFields, limitChanges, type LimitForm } from "./LimitFields.tsx";
import { useMove, type Action, type Status, type Wish } from "./queries.ts";
import { useRequester, RequesterField } from "./Requester.tsx";
import { TargetFields, type TargetForm } from "./TargetFields.tsx";

interface Told {
  readonly title: (agent: string) => string;
  readonly text: string;
  readonly button: string;
  /** Said of the agent when it was done. */
  readonly done: string;
}

const TOLD: Record<Action, Told> = {
  ready: {
    title: (agent) => `Attest that ${agent} is ready`,
    text: "Say what no program can check: that the new version is deployed and documented, and that those who depend on it were told. Without it a cutover is refused.",
    button: "Attest",
    done: "is attested as ready",
  },
  shadow: {
    title: (agent) => `Shadow ${agent}`,
    text: "The input of some runs also goes to the new side, beside. No run waits for it or gets its answer; what both have said is compared.",
    button: "Shadow",
    done: "is shadowed",
  },
  canary: {
    title: (agent) => `Try ${agent}’s new side on some runs`,
    text: "A share of the runs that begin from now on calls the new side. It is watched, and rolled back by itself when it fails too often or gets too slow.",
    button: "Begin",
    done: "tries its new side",
  },
  cutover: {
    title: (agent) => `Cut ${agent} over?`,
    text: "The new side is checked once more. Then all runs that begin from now on call it; those under way stay where they have begun, so keep the old side running.",
    button: "Cut over",
    done: "has been cut over",
  },
  rollback: {
    title: (agent) => `Roll ${agent} back?`,
    text: "All runs that begin from now on call the old side again. What was attested is withdrawn.",
    button: "Roll back",
    done: "has been rolled back",
  },
  finish: {
    title: (agent) => `Finish the migration of ${agent}?`,
    text: "The agent is registered as its new side, and the old one is given up. There is no way back from here but another migration.",
    button: "Finish",
    done: "is registered as its new side",
  },
};

export function MigrationDialog({ action, status, onClose }: { action: Action; status: Status; onClose: () => void }) {
  const { title, text, button, done } = TOLD[action];
  const state = status.migration;
  const move = useMove(status.agent);
  const [who, setWho] = useRequester();
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

  const wish = (): Wish => {
    const asked = { why, who: who.trim() === "" ? null : who };
    const url = target.url.trim() === "" ? null : target.url.trim();
    const aim = { url, protocol: target.protocol, protocol_config: null };
    // Whoever attests says where to only if nobody has, or if it is to be elsewhere.
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
        return { action, body: asked };
      case "finish":
        return { action, body: asked };
    }
  };
  const submit = () =>
    move.mutate(wish(), {
      onSuccess: () => {
        toast("done", `${status.agent} ${done}.`);
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
                It is refused as things stand:
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
              label="What was done"
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
              label={
                action === "shadow" ? "Share of the runs that are shadowed" : "Share of the runs that call the new side"
              }
              required
              min={0.01}
              max={100}
              suffix=" %"
              allowNegative={false}
              decimalScale={2}
              clampBehavior="none"
              value={percent}
              onChange={setPercent}
              data-autofocus
              data-testid="percent"
              error={
                typeof percent === "number" && percent > 0 && percent <= 100 ? null : "More than 0 and at most 100."
              }
            />
          )}
          {aims && <TargetFields status={status} value={target} onChange={setTarget} />}
          {isTrial && <LimitFields present={state?.limits} value={limits} onChange={setLimits} />}
          {against.length > 0 && (
            <Checkbox
              label="Overrule this; who did it and why is kept in the history"
              checked={force}
              onChange={(event) => setForce(event.currentTarget.checked)}
              data-testid="force"
            />
          )}
          {action !== "ready" && (
            <Textarea
              label="Why"
              description="For those who read it later."
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
          <RequesterField value={who} onChange={setWho} />
          {move.error !== null && <ProblemPanel error={move.error} />}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose}>
              Leave it as it is
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

/** A cutover checks the new side by itself: that it was not checked before, or has failed before, may be over then. */
function onlyNeedsCheck(against: Status["blockers"]): boolean {
  return against.every(({ code }) => code === "check_missing" || code === "check_failed");
}
