/** The reply to a question: as text, as JSON, or as a form if the question has a schema. */

import { Button, Group, SegmentedControl, Stack, Text, Textarea } from "@mantine/core";
import { Send } from "lucide-react";
import { useState } from "react";

import { usePermission } from "../app/permissions.ts";
import { NotAllowed } from "../app/NotAllowed.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { toast } from "../app/toasts.ts";
import { JsonEditor, jsonProblem, parsed, written } from "../forms/JsonEditor.tsx";
import { missing, placed, type Json } from "../forms/schema.ts";
import { emptyForm, SchemaForm } from "../forms/SchemaForm.tsx";
import { useInvalidFields } from "../forms/useInvalidFields.ts";
import { schemaOf, useReply, type InboxItem, type Reply } from "./queries.ts";

type ReplyFormat = "text" | "form" | "json";
const NAMES: Readonly<Record<ReplyFormat, string>> = { text: "Text", form: "Form", json: "JSON" };

export function ReplyForm({ item, onDone, isOver }: { item: InboxItem; onDone: () => void; isOver: boolean }) {
  const schema = schemaOf(item.data);
  const ways: readonly ReplyFormat[] = schema === null ? ["text", "json"] : ["form", "text", "json"];
  const may = usePermission("operator");
  const [way, setWay] = useState<ReplyFormat>(ways[0]!);
  const [words, setWords] = useState(item.kind === "auth" ? "I have logged in." : "");
  const [form, setForm] = useState<Json | undefined>(() => (schema === null ? undefined : emptyForm(schema)));
  const [json, setJson] = useState("");
  const fields = useInvalidFields();
  const [messages, setMessages] = useState(NO_MESSAGES);
  const reply = useReply(item);

  const answer = answerOf();
  function answerOf(): Reply | null {
    if (isOver) return null;
    if (way === "text") return words.trim() === "" ? null : { text: words };
    if (way === "form") return fields.isBroken || form === undefined ? null : { data: form };
    if (jsonProblem(json) !== null) return null;
    const data = parsed(json);
    return data === undefined || data === null ? null : { data };
  }
  const send = () => {
    if (answer === null || !may.allowed) return;
    const gaps = way === "form" && schema !== null ? missing(schema, form, "answer") : [];
    setMessages(schema === null ? NO_MESSAGES : placed(gaps, schema));
    if (gaps.length > 0) return;
    reply.mutate(answer, {
      onSuccess: () => {
        toast("done", `Reply sent. The step ${item.step} continues.`);
        onDone();
      },
    });
  };
  const change = (next: ReplyFormat) => {
    if (next === "json" && way === "form") setJson(written(form));
    setWay(next);
  };

  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <Stack gap="sm">
        {!isOver && <NotAllowed may={may} title="You can't reply" />}
        <Group justify="space-between">
          <Text fw={600} size="sm" id="answer-as">
            Reply
          </Text>
          <SegmentedControl
            size="xs"
            aria-labelledby="answer-as"
            data={ways.map((each) => ({ value: each, label: NAMES[each] }))}
            value={way}
            onChange={(next) => change(next)}
            data-testid="answer-as"
          />
        </Group>
        {way === "text" && (
          <Textarea
            aria-label="Reply text"
            autosize
            minRows={3}
            maxRows={16}
            readOnly={isOver}
            value={words}
            onChange={(event) => setWords(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
            }}
            data-testid="answer-text"
          />
        )}
        {way === "form" && schema !== null && (
          <SchemaForm
            schema={schema}
            name="answer"
            value={form}
            onChange={setForm}
            messages={messages}
            onBroken={fields.onBroken}
          />
        )}
        {way === "json" && <JsonEditor label="Reply (JSON)" text={json} onText={setJson} testId="answer-json" />}
        {reply.error !== null && <ProblemPanel error={reply.error} />}
        <Group gap="sm">
          <Button
            type="submit"
            leftSection={<Send size={16} aria-hidden />}
            loading={reply.isPending}
            disabled={answer === null || !may.allowed}
            data-testid="send-answer"
          >
            Send reply
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

const NO_MESSAGES: ReadonlyMap<string, readonly string[]> = new Map();
