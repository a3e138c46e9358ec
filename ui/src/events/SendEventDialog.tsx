/** Sends an event: a type, a key, and any JSON. */

import { Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { useState } from "react";

import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { toast } from "../app/toasts.ts";
import { JsonEditor, jsonProblem, parsed } from "../forms/JsonEditor.tsx";
import { useSend } from "./queries.ts";

export function SendEventDialog({ onClose }: { onClose: () => void }) {
  const [type, setType] = useState("");
  const [key, setKey] = useState("");
  const [data, setData] = useState("{}");
  const sending = useSend();
  const go = () =>
    sending.mutate(
      { type, ...(key === "" ? {} : { key }), data: parsed(data) ?? null },
      {
        onSuccess: ({ id }) => {
          toast("done", `Sent event ${id}.`);
          onClose();
        },
      },
    );
  return (
    <Modal opened onClose={onClose} title="Send an event" transitionProps={{ duration: 0 }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          go();
        }}
      >
        <Stack gap="sm" data-testid="send-dialog">
          <TextInput
            label="Type"
            required
            value={type}
            onChange={(event) => setType(event.currentTarget.value)}
            maxLength={255}
            data-autofocus
            data-testid="send-type"
          />
          <TextInput
            label="Key"
            description="What the event is about, such as an order number."
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
            maxLength={255}
            data-testid="send-key"
          />
          <JsonEditor label="Data" text={data} onText={setData} testId="send-data" />
          {sending.error !== null && <ProblemPanel error={sending.error} />}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button
              type="submit"
              loading={sending.isPending}
              disabled={type === "" || jsonProblem(data) !== null}
              data-testid="send"
            >
              Send
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
