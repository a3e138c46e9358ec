/** What one can do with a run: answer what it asks, pause, resume, cancel, retry. */

import { Group, Modal } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Ban, MessageCircleQuestionMark, Pause, Play, RotateCcw } from "lucide-react";
import { lazy, Suspense, useState } from "react";

import { useMay } from "../../app/access.ts";
import { Loading } from "../../app/Loading.tsx";
import { toast } from "../../app/toasts.ts";
import type { RunModel } from "../model.ts";
import { ActionButton } from "./ActionButton.tsx";
import { CancelDialog } from "./CancelDialog.tsx";
import { refusal, useRunCommands, wordsOf } from "./runCommands.ts";
import { waitingStep } from "./waitingStep.ts";

const AnswerStep = lazy(() => import("./AnswerStep.tsx"));
const RetryDialog = lazy(() => import("./RetryDialog.tsx"));

export function RunActions({ run, model, step }: { run: string; model: RunModel; step: string | null }) {
  const may = useMay("operator");
  const steering = useRunCommands(run);
  const [cancelling, { open: askCancel, close: closeCancel }] = useDisclosure();
  const [retrying, { open: openRetry, close: closeRetry }] = useDisclosure();
  // By its name: whoever else answers meanwhile is not to take the dialog away without a word.
  const [answering, setAnswering] = useState<string | null>(null);
  const asking = waitingStep(model, step);
  const why = (wish: "cancel" | "pause" | "resume" | "retry") => (may.allowed ? refusal(wish, model) : may.reason);
  const steer = (wish: "pause" | "resume") =>
    steering.mutate(wish, { onError: (error) => toast("failed", wordsOf(error)) });
  const paused = model.status === "PAUSED";
  return (
    <Group gap="xs" role="group" aria-label="Actions on the run" data-testid="run-actions">
      {asking !== null && (
        <ActionButton
          icon={MessageCircleQuestionMark}
          filled
          refused={null}
          onPress={() => setAnswering(asking.name)}
          testId="answer-step"
        >
          {`${asking.status === "OUTCOME_UNKNOWN" ? "Resolve" : "Answer"} ${asking.name}`}
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
        title={`Step “${answering ?? ""}” waits for a person`}
        size="lg"
      >
        <Suspense fallback={<Loading lines={4} />}>
          {answering !== null && <AnswerStep run={run} step={answering} onDone={() => setAnswering(null)} />}
        </Suspense>
      </Modal>
    </Group>
  );
}
