/** Starts a run with a form generated from the input schema, or with JSON. */

import { Alert, Button, Group, NumberInput, SegmentedControl, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Play } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";

import { api, body } from "../../api/client.ts";
import { StartKey } from "../../api/idempotency.ts";
import { Problem } from "../../api/problem.ts";
import type { components } from "../../api/schema.d.ts";
import { usePermission } from "../../app/permissions.ts";
import { CopyTextButton } from "../../app/CopyTextButton.tsx";
import { AnchorLink } from "../../app/links.tsx";
import { Loading } from "../../app/Loading.tsx";
import { NotAllowed } from "../../app/NotAllowed.tsx";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import { startRoute } from "../../app/router.tsx";
import { usePageTitle } from "../../app/title.ts";
import { toast } from "../../app/toasts.ts";
import { JsonEditor, jsonProblem, parsed, written } from "../../forms/JsonEditor.tsx";
import { isSchema, placed, type Json } from "../../forms/schema.ts";
import { emptyForm, SchemaForm } from "../../forms/SchemaForm.tsx";
import { useInvalidFields } from "../../forms/useInvalidFields.ts";
import { executeCurl } from "../executeCurl.ts";
import { runCommand } from "./cliCommand.ts";
import { asksForSecrets, deleteStartDraft, saveStartDraft, readStartDraft } from "./startDraft.ts";
import classes from "./StartPage.module.css";

type Workflow = components["schemas"]["Workflow"];

export function StartPage() {
  const { workflow } = startRoute.useParams();
  const { version } = startRoute.useSearch();
  const query = useQuery({
    queryKey: ["workflows", workflow, version ?? null, "to-start"],
    queryFn: () =>
      version === undefined
        ? body(api.GET("/api/v1/workflows/{workflow}", { params: { path: { workflow } } }))
        : body(api.GET("/api/v1/workflows/{workflow}/versions/{version}", { params: { path: { workflow, version } } })),
    // The form must not change while the user fills it in.
    staleTime: Infinity,
  });
  if (query.error !== null) return <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  if (query.data === undefined) return <Loading />;
  return <StartForm key={`${query.data.id}/${query.data.version}`} workflow={query.data} pinned={version ?? null} />;
}

function StartForm({ workflow, pinned }: { workflow: Workflow; pinned: number | null }) {
  const wanted = workflow.definition["input"];
  const schema = isSchema(wanted) && Object.keys(wanted).length > 0 ? wanted : null;
  usePageTitle(`Start ${workflow.name}`);
  const may = usePermission("operator");
  const [kept, setKept] = useState(() => readStartDraft(workflow.name, workflow.version));
  const [empty] = useState<Json | undefined>(() => (schema === null ? {} : emptyForm(schema)));
  const [mode, setMode] = useState<"form" | "json">(schema === null ? "json" : (kept?.mode ?? "form"));
  const [value, setValue] = useState<Json | undefined>(() =>
    kept === null || kept.mode === "json" ? empty : parsed(kept.text),
  );
  const [text, setText] = useState(() => kept?.text ?? written(empty ?? {}));
  const [form, setForm] = useState(0);
  const fields = useInvalidFields();
  const [priority, setPriority] = useState<number | null>(null);
  const start = useStart(workflow, pinned, priority);
  const frame = useRef<HTMLFormElement>(null);

  const isBroken = mode === "json" ? jsonProblem(text) !== null : fields.isBroken;
  const given = mode === "form" ? value : isBroken ? undefined : parsed(text);
  const input = given === undefined ? {} : given;
  const refused = start.error instanceof Problem && start.error.errors.length > 0 ? start.error : null;
  const isPlaced = mode === "form" && schema !== null && refused !== null;
  const messages = useMemo(
    () => (schema === null || refused === null ? NO_MESSAGES : placed(refused.errors, schema)),
    [schema, refused],
  );

  useEffect(() => {
    if (isPlaced) frame.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [isPlaced, start.submittedAt]);

  const filled = mode === "json" ? text : written(value);
  const isEmpty = filled === written(mode === "json" ? (empty ?? {}) : empty);
  useEffect(() => {
    if (isEmpty) deleteStartDraft(workflow.name);
    else saveStartDraft(workflow.name, workflow.version, schema, { mode, text: filled });
  }, [workflow.name, workflow.version, schema, mode, filled, isEmpty]);
  const clearForm = () => {
    setKept(null);
    setValue(empty);
    setText(written(empty ?? {}));
    fields.mend();
    // Fields keep invalid text, so the form is remounted to reset them.
    setForm(form + 1);
    start.reset();
  };

  const change = (next: "form" | "json") => {
    if (next === "json") setText(written(input));
    else {
      setValue(input);
      fields.mend();
    }
    start.reset();
    setMode(next);
  };

  return (
    <Stack gap="md" className={classes["page"]}>
      <Group justify="space-between" align="flex-start">
        <div>
          <Title order={1} size="h3">
            Start a run of {workflow.name}
          </Title>
          <Text size="sm" c="dimmed">
            <AnchorLink
              to="/workflows/$workflow"
              params={{ workflow: workflow.name }}
              search={{}}
              fz="sm"
              underline="always"
            >
              {workflow.name}
            </AnchorLink>{" "}
            version {workflow.version}
            {pinned === null ? ", the latest" : ""}
            {workflow.description === null ? "" : `: ${workflow.description}`}
          </Text>
        </div>
        {schema !== null && (
          <SegmentedControl
            size="xs"
            aria-label="Input format"
            data={[
              { value: "form", label: "Form" },
              { value: "json", label: "JSON" },
            ]}
            value={mode}
            onChange={(next) => {
              if (!isBroken) change(next);
            }}
            disabled={isBroken}
            data-testid="start-as"
          />
        )}
      </Group>
      <form
        ref={frame}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBroken && may.allowed) start.mutate(input);
        }}
        data-testid="start-form"
      >
        <Stack gap="md">
          <NotAllowed may={may} title="You can't start a run" />
          {schema === null && (
            <Alert variant="light" p="xs">
              <Text size="sm">This workflow has no input schema. You can enter any JSON.</Text>
            </Alert>
          )}
          {kept !== null && !isEmpty && (
            <Group gap="xs" role="status" data-testid="start-kept">
              <Text size="sm" c="dimmed">
                Your previous entries are restored.
                {asksForSecrets(schema) && " Secrets are not stored, so enter them again."}
              </Text>
              <Button variant="default" size="compact-xs" onClick={clearForm} data-testid="clear-form">
                Clear form
              </Button>
            </Group>
          )}
          {mode === "form" && schema !== null ? (
            <SchemaForm
              key={form}
              schema={schema}
              name="input"
              value={value}
              onChange={setValue}
              messages={messages}
              onBroken={fields.onBroken}
            />
          ) : (
            <JsonEditor label="Input" text={text} onText={setText} testId="start-json" />
          )}
          {isPlaced ? (
            <Text size="sm" c="var(--status-failed)" role="alert" data-testid="start-refused">
              {start.error?.message} Check the marked fields.
            </Text>
          ) : (
            start.error !== null && <ProblemPanel error={start.error} />
          )}
          {HOLDING_BACK.some((key) => key in workflow.definition) && (
            <NumberInput
              label="Priority"
              description="This workflow limits how many runs start. Of the runs that wait, those with the highest priority start first."
              placeholder={String(priorityOf(workflow))}
              min={-MAX_PRIORITY}
              max={MAX_PRIORITY}
              allowDecimal={false}
              clampBehavior="strict"
              value={priority ?? ""}
              onChange={(next) => setPriority(typeof next === "number" ? next : null)}
              data-testid="priority"
            />
          )}
          <Group gap="sm">
            <Button
              type="submit"
              leftSection={<Play size={16} aria-hidden />}
              loading={start.isPending}
              disabled={isBroken || !may.allowed}
              data-testid="start"
            >
              Start run
            </Button>
            <CopyTextButton
              label="Copy as curl"
              text={() => executeCurl(workflow.name, pinned, input, priority)}
              testid="copy-curl"
              size="sm"
            />
            <CopyTextButton
              label="Copy as CLI command"
              text={() => runCommand(workflow.name, pinned, input, priority)}
              testid="copy-command"
              size="sm"
            />
            {!may.allowed && (
              <Text size="sm" c="dimmed">
                {may.reason}
              </Text>
            )}
          </Group>
        </Stack>
      </form>
    </Stack>
  );
}

function useStart(workflow: Workflow, version: number | null, priority: number | null) {
  const keys = useRef(new StartKey());
  const queries = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    networkMode: "always",
    mutationFn: (input: Json) =>
      body(
        api.POST("/api/v1/workflows/{workflow}/execute", {
          params: {
            path: { workflow: workflow.name },
            query: { ...(version === null ? {} : { version }), ...(priority === null ? {} : { priority }) },
            header: { "Idempotency-Key": keys.current.of(JSON.stringify([input, priority])) },
          },
          body: input,
        }),
      ),
    onSuccess: (run) => {
      deleteStartDraft(workflow.name);
      toast("done", `Started a run of ${workflow.name}.`);
      void queries.invalidateQueries({ queryKey: ["runs"] });
      void navigate({ to: "/runs/$run", params: { run: run.id }, search: {} });
    },
  });
}

function priorityOf({ definition }: Workflow): number {
  const priority = definition["priority"];
  return typeof priority === "number" ? priority : 0;
}

/** The keys of a definition that make its runs wait. */
const HOLDING_BACK = ["concurrency", "throttle", "debounce"] as const;
const MAX_PRIORITY = 1000;
const NO_MESSAGES: ReadonlyMap<string, readonly string[]> = new Map();
