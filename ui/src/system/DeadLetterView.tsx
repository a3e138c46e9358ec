/** One dead letter, with the actions replay and delete. */

import { Button, CloseButton, Group, Modal, Paper, Stack, Table, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Send, Trash2 } from "lucide-react";

import { Problem } from "../api/problem.ts";
import { usePermission } from "../app/permissions.ts";
import { sizeOf } from "../app/bytes.ts";
import { Loading } from "../app/Loading.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { toast } from "../app/toasts.ts";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import { type Decision, deadLetterQuery, type System, useDecision } from "./queries.ts";
import classes from "./system.module.css";

export function DeadLetterView({ id, system }: { id: string; system: System | undefined }) {
  const navigate = useNavigate({ from: "/system" });
  const query = useQuery(deadLetterQuery(id));
  const close = () => void navigate({ search: { tab: "letters" } });
  const letter = query.data;
  return (
    <Paper component="section" withBorder p="md" aria-label="Selected dead letter" data-testid="letter">
      <Group justify="space-between" wrap="nowrap" align="flex-start" mb="xs">
        <Title order={2} size="h5">
          Dead letter
        </Title>
        <CloseButton aria-label="Close" onClick={close} data-testid="close-letter" />
      </Group>
      {query.error !== null && <Missing error={query.error} />}
      {query.isPending && <Loading lines={4} />}
      {letter !== undefined && (
        <Stack gap="sm">
          <Text size="sm" className={classes["wrap"]} data-testid="letter-reason">
            {letter.reason}
          </Text>
          <Text size="xs" c="dimmed" className={classes["wrap"]}>
            {letter.topic}, partition {letter.partition}, offset {letter.offset} · key {letter.key ?? "none"} ·{" "}
            {sizeOf(letter.size)} · <Timestamp at={letter.at} />
          </Text>
          <Decisions id={id} topic={letter.topic} hasValue={letter.value !== null} system={system} onDone={close} />
          <Text size="sm" fw={600}>
            {letter.value === null
              ? "No value"
              : `Value${letter.encoding === "base64" ? " (binary, shown as base64)" : ""}`}
          </Text>
          {letter.value !== null && (
            <pre className={classes["value"]} tabIndex={0} aria-label="Value" data-testid="letter-value">
              {letter.value}
            </pre>
          )}
          {letter.cut && (
            <Text size="sm" c="dimmed">
              The value is truncated here. A replay sends all of it.
            </Text>
          )}
          {letter.headers.length > 0 && (
            <Table verticalSpacing={3} fz="sm">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Header</Table.Th>
                  <Table.Th>Value</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {letter.headers.map((header, place) => (
                  <Table.Tr key={place}>
                    <Table.Td className={classes["wrap"]}>{header.name}</Table.Td>
                    <Table.Td className={classes["wrap"]}>{header.value}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          )}
        </Stack>
      )}
    </Paper>
  );
}

function Missing({ error }: { error: Error }) {
  if (error instanceof Problem && error.status === 404) {
    return (
      <Text size="sm" data-testid="letter-gone">
        This dead letter no longer exists. It was replayed or deleted.
      </Text>
    );
  }
  return <ProblemPanel error={error} />;
}

function Decisions({
  id,
  topic,
  hasValue,
  system,
  onDone,
}: {
  id: string;
  topic: string;
  hasValue: boolean;
  system: System | undefined;
  onDone: () => void;
}) {
  const may = usePermission("operator");
  const [replaying, replay] = useDisclosure();
  const [deleting, deletion] = useDisclosure();
  const refused = may.allowed ? null : may.reason;
  const withoutBroker =
    system?.broker === "memory" ? "This server does not use a broker, so there is no topic to replay to." : null;
  const empty = hasValue ? null : "The message has no value to send.";
  return (
    <Group gap="xs">
      <ActionButton icon={Send} refused={refused ?? withoutBroker ?? empty} onPress={replay.open} testId="replay">
        Replay
      </ActionButton>
      <ActionButton icon={Trash2} refused={refused} onPress={deletion.open} testId="delete">
        Delete
      </ActionButton>
      <Confirm
        id={id}
        decision="replay"
        opened={replaying}
        onClose={replay.close}
        onDone={onDone}
        title="Replay this dead letter?"
        text={`The unchanged message is sent to ${topic} again and removed from this list. If it still cannot be read or applied, it becomes a new dead letter.`}
        act="Replay"
        done="Dead letter replayed."
      />
      <Confirm
        id={id}
        decision="delete"
        opened={deleting}
        onClose={deletion.close}
        onDone={onDone}
        title="Delete this dead letter?"
        text="The message is permanently deleted. Trunkline resends a lost task or result automatically. A lost request to start a run is not repeated, so that run does not start."
        act="Delete"
        done="Dead letter deleted."
      />
    </Group>
  );
}

function Confirm({
  id,
  decision,
  opened,
  onClose,
  onDone,
  title,
  text,
  act,
  done,
}: {
  id: string;
  decision: Decision;
  opened: boolean;
  onClose: () => void;
  onDone: () => void;
  title: string;
  text: string;
  act: string;
  done: string;
}) {
  const deciding = useDecision(id);
  const go = () =>
    deciding.mutate(decision, {
      onSuccess: () => {
        onClose();
        onDone();
        toast("done", done);
      },
    });
  return (
    <Modal opened={opened} onClose={onClose} title={title} transitionProps={{ duration: 0 }}>
      <Stack gap="sm" data-testid={`${decision}-dialog`}>
        <Text size="sm">{text}</Text>
        {deciding.error !== null && <ProblemPanel error={deciding.error} />}
        <Group justify="flex-end" gap="sm">
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          <Button
            {...(decision === "delete" ? { color: "red.9" } : {})}
            loading={deciding.isPending}
            onClick={go}
            data-testid={`confirm-${decision}`}
          >
            {act}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
