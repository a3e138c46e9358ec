/** The answer to a human task: one of its options, the data of its form, and a comment. */

import { Button, Group, Radio, Stack, Text, Textarea } from "@mantine/core";
import { Send } from "lucide-react";
import { useMemo, useState } from "react";

import { Problem } from "../api/problem.ts";
import { usePermission } from "../app/permissions.ts";
import { NotAllowed } from "../app/NotAllowed.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { toast } from "../app/toasts.ts";
import { JsonEditor, jsonProblem, parsed } from "../forms/JsonEditor.tsx";
import { isSchema, missing, placed, type Json, type Schema } from "../forms/schema.ts";
import { emptyForm, SchemaForm } from "../forms/SchemaForm.tsx";
import { invalidValues } from "../forms/validate.ts";
import { useInvalidFields } from "../forms/useInvalidFields.ts";
import { uploadFile, useReply, type InboxItem, type TaskAnswer } from "./queries.ts";

// The server names the values of the form so.
const DATA = "data";
const NO_MESSAGES: ReadonlyMap<string, readonly string[]> = new Map();

export function TaskForm({ item, onDone, isOver }: { item: InboxItem; onDone: () => void; isOver: boolean }) {
  const may = usePermission("operator");
  const options = item.options ?? [];
  const schema = isSchema(item.form) ? item.form : null;
  const isGroup = schema !== null && isSchema(schema["properties"]);
  const [answer, setAnswer] = useState("");
  const [comment, setComment] = useState("");
  const [form, setForm] = useState<Json | undefined>(() => (isGroup ? emptyForm(schema) : undefined));
  const [json, setJson] = useState("");
  const [gaps, setGaps] = useState(NO_MESSAGES);
  const fields = useInvalidFields();
  const reply = useReply(item);
  const refused = useMemo(() => placedErrors(reply.error, schema), [reply.error, schema]);

  const isReady =
    !isOver && (options.length === 0 || answer !== "") && !fields.isBroken && (isGroup || jsonProblem(json) === null);
  const send = () => {
    if (!isReady || !may.allowed) return;
    const left = isGroup
      ? placed([...missing(schema, form, DATA), ...invalidValues(schema, form, DATA)], schema)
      : NO_MESSAGES;
    setGaps(left);
    if (left.size > 0) return;
    const data = isGroup ? form : schema === null ? undefined : parsed(json);
    reply.mutate(answerOf(answer, comment, data), {
      onSuccess: () => {
        toast("done", `Answer sent. The step ${item.step} continues.`);
        onDone();
      },
    });
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
        {!isOver && <NotAllowed may={may} title="You can't answer" />}
        {isGroup && (
          <SchemaForm
            schema={schema}
            name={DATA}
            value={form}
            onChange={setForm}
            messages={gaps.size > 0 ? gaps : refused}
            onBroken={fields.onBroken}
            upload={(file) => uploadFile(item.id, file)}
          />
        )}
        {schema !== null && !isGroup && (
          <JsonEditor label="Data (JSON)" text={json} onText={setJson} testId="task-json" />
        )}
        {options.length > 0 ? (
          <Radio.Group label="Answer" withAsterisk value={answer} onChange={setAnswer} data-testid="task-options">
            <Stack gap="xs" mt="xs">
              {options.map((option) => (
                <Radio key={option} value={option} label={option} disabled={isOver} />
              ))}
            </Stack>
          </Radio.Group>
        ) : (
          <Textarea
            label="Answer"
            autosize
            minRows={schema === null ? 3 : 1}
            maxRows={16}
            readOnly={isOver}
            value={answer}
            onChange={(event) => setAnswer(event.currentTarget.value)}
            data-testid="task-answer"
          />
        )}
        <Textarea
          label="Comment"
          autosize
          minRows={1}
          maxRows={8}
          readOnly={isOver}
          value={comment}
          onChange={(event) => setComment(event.currentTarget.value)}
          data-testid="task-comment"
        />
        {(item.required ?? 1) > 1 && (
          <Text size="sm" c="dimmed" data-testid="task-required">
            {`${item.answers?.length ?? 0} of ${item.required} people have answered.`}
          </Text>
        )}
        {reply.error !== null && <ProblemPanel error={reply.error} />}
        <Group gap="sm">
          <Button
            type="submit"
            leftSection={<Send size={16} aria-hidden />}
            loading={reply.isPending}
            disabled={!isReady || !may.allowed}
            data-testid="send-answer"
          >
            Send answer
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function answerOf(answer: string, comment: string, data: Json | undefined): TaskAnswer {
  return {
    ...(answer === "" ? {} : { answer }),
    ...(comment === "" ? {} : { comment }),
    ...(data === undefined || data === null ? {} : { data }),
  };
}

/** The server's messages, at their fields. */
function placedErrors(error: Error | null, schema: Schema | null): ReadonlyMap<string, readonly string[]> {
  if (schema === null || !(error instanceof Problem)) return NO_MESSAGES;
  return placed(error.errors, schema);
}
