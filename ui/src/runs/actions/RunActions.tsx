/** The actions of a run: reply, pause, resume, cancel, retry. */

import { Group, Modal } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Ban, MessageCircleQuestionMark, Pause, Play, RotateCcw } from "lucide-react";
import { lazy, Suspense, useState } from "react";

import { usePermission } from "../../app/permissions.ts";
import { Loading } from "../../app/Loading.tsx";
import { toast } from "../../app/toasts.ts";
import type { RunModel } from "../model.ts";
import { ActionButton } from "./ActionButton.tsx";
import { CancelDialog } from "./CancelDialog.tsx";
import { refusal, useRunCommands, errorMessage } from "./runCommands.ts";
import { waitingStep } from "./waitingStep.ts";

const ReplyToStep = lazy(() => import("./ReplyToStep.tsx"));
const RetryDialog = lazy(() => import("./RetryDialog.tsx"));

export function RunActions({ run, model, step }: { run: string; model: RunModel; step: string | null }) {
  const may = usePermission("operator");
  const steering = useRunCommands(run);
  const [cancelling, { open: askCancel, close: closeCancel }] = useDisclosure();
  const [retrying, { open: openRetry, close: closeRetry }] = useDisclosure();
  // The name of the step, so that the dialog stays open when another person replies.
  const [answering, setAnswering] = useState<string | null>(null);
  const asking = waitingStep(model, step);
  const why = (wish: "cancel" | "pause" | "resume" | "retry") => (may.allowed ? refusal(wish, model) : may.reason);
  const steer = (wish: "pause" | "resume") =>
    steering.mutate(wish, { onError: (error) => toast("failed", errorMessage(error)) });
  const paused = model.status === "PAUSED";
  return (
    <Group gap="xs" role="group" aria-label="Run actions" data-testid="run-actions">
      {asking !== null && (
        <ActionButton
          icon={MessageCircleQuestionMark}
          filled
          refused={null}
          onPress={() => setAnswering(asking.name)}
          testId="answer-step"
        >
          {`${asking.status === "OUTCOME_UNKNOWN" || asking.waitingFor?.kind === "compensation" ? "Resolve" : "Reply to"} ${asking.name}`}
        </ActionButton>
      )}
      {paused ? (
        <ActionButton
          icon={Play}
          refused={why("resume")}
          loading={steering.isPending && steering.variables === "resume"}
          onPress={() => steer("resume")}
          testId="resume"
        >
          Resume
        </ActionButton>
      ) : (
        <ActionButton
          icon={Pause}
          refused={why("pause")}
          loading={steering.isPending && steering.variables === "pause"}
          onPress={() => steer("pause")}
          testId="pause"
        >
          Pause
        </ActionButton>
      )}
      <ActionButton icon={Ban} refused={why("cancel")} onPress={askCancel} testId="cancel">
        Cancel
      </ActionButton>
      <ActionButton icon={RotateCcw} refused={why("retry")} onPress={openRetry} testId="retry">
        Retry…
      </ActionButton>
      <CancelDialog run={run} model={model} opened={cancelling} onClose={closeCancel} />
      <Modal opened={retrying} onClose={closeRetry} title="Retry this run" size="lg">
        <Suspense fallback={<Loading lines={4} />}>
          <RetryDialog run={run} step={step} onClose={closeRetry} />
        </Suspense>
      </Modal>
      <Modal
        opened={answering !== null}
        onClose={() => setAnswering(null)}
        title={`Step “${answering ?? ""}” is waiting for a person`}
        size="lg"
      >
        <Suspense fallback={<Loading lines={4} />}>
          {answering !== null && <ReplyToStep run={run} step={answering} onDone={() => setAnswering(null)} />}
        </Suspense>
      </Modal>
    </Group>
  );
}
