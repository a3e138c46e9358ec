/** The editor of a definition, with its graph and the findings of the server. */

import type { EditorView } from "@codemirror/view";
import { Alert, Button, Code, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { History, Save, Undo2 } from "lucide-react";
import { type ReactNode, useCallback, useMemo, useRef, useState } from "react";

import { NoResponseError } from "../../api/problem.ts";
import { usePermission } from "../../app/permissions.ts";
import { NotAllowed } from "../../app/NotAllowed.tsx";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import { useShortcut } from "../../app/shortcuts.ts";
import { ActionButton } from "../../runs/actions/ActionButton.tsx";
import { GraphPane } from "../GraphPane.tsx";
import type { Knowledge } from "../language/completion.ts";
import { agentNamesQuery, type Finding, type Graph, graphQuery, schemaQuery, workflowNamesQuery } from "../queries.ts";
import { stepAt, stepStretches } from "../stepRanges.ts";
import classes from "../workflows.module.css";
import { offsetOf } from "./diagnostics.ts";
import { SaveConflictDialog } from "./SaveConflictDialog.tsx";
import { dropDraft, keepDraft, readDraft } from "./drafts.ts";
import { FindingList } from "./FindingList.tsx";
import { LeaveWarning } from "./LeaveWarning.tsx";
import { useSaving } from "./useSaving.ts";
import { type Checked, useValidation } from "./validation.ts";
import { YamlEditor } from "./YamlEditor.tsx";

export interface EditorProps {
  readonly heading: string;
  /** The workflow that is edited; null for a new one. */
  readonly workflow: string | null;
  /** The initial text. */
  readonly text: string;
  /** The version of the initial text. */
  readonly version: number | null;
  /** The latest saved version. */
  readonly latest: number | null;
  readonly step: string | null;
  readonly onStep: (step: string | null) => void;
  readonly children?: ReactNode;
}

export function Editor({ heading, workflow, text: given, version, latest, step, onStep, children }: EditorProps) {
  const [draft] = useState(() => readDraft(workflow));
  const [begun, setBegun] = useState(() => ({
    text: draft?.text ?? given,
    restored: draft !== null && draft.text !== given,
  }));
  const [text, setText] = useState(begun.text);
  const [kept, setKept] = useState(true);
  const expected = draft?.latest ?? latest;
  const editor = useRef<EditorView | null>(null);
  const unsaved = useRef(begun.text !== given);
  const checked = useValidation(text);
  const knowledge = useKnowledge();
  const graph = useGraph(checked, workflow, version);
  const stretches = useMemo(() => stepStretches(text), [text]);
  const may = usePermission("admin");

  const write = (next: string) => {
    setText(next);
    unsaved.current = next !== given;
    if (unsaved.current) setKept(keepDraft(workflow, { text: next, latest: expected }));
    else dropDraft(workflow);
  };
  const discard = () => {
    dropDraft(workflow);
    unsaved.current = false;
    setText(given);
    setBegun({ text: given, restored: false });
    // Setting the same text would not reset the editor.
    editor.current?.dispatch({ changes: { from: 0, to: editor.current.state.doc.length, insert: given } });
  };
  const select = (next: string | null) => {
    if (next !== step) onStep(next);
  };
  const go = (finding: Finding) => {
    const view = editor.current;
    if (view === null) return;
    view.dispatch({ selection: { anchor: offsetOf(view.state.doc, finding) }, scrollIntoView: true });
    view.focus();
  };
  const saving = useSaving(text, workflow, expected, unsaved, go);
  const save = () => {
    if (may.allowed) saving.save();
  };
  const name = checked.validation?.name ?? null;
  const refused = may.allowed ? refusal(checked) : may.reason;
  useShortcut("mod+s", "Save", save);
  return (
    <Stack gap="sm">
      <Group justify="space-between" gap="sm">
        <Title order={1} size="h3" className={classes["name"]}>
          {heading}
        </Title>
        <Group gap="xs">
          {text !== given && (
            <Button
              variant="default"
              leftSection={<Undo2 size={16} aria-hidden />}
              onClick={discard}
              data-testid="discard"
            >
              Discard changes
            </Button>
          )}
          <ActionButton
            icon={Save}
            refused={refused}
            loading={saving.busy}
            filled
            size="sm"
            onPress={save}
            testId="save"
          >
            {workflow === null || latest === null ? "Save" : `Save as version ${latest + 1}`}
          </ActionButton>
        </Group>
      </Group>
      <NotAllowed may={may} title="You can't save changes here" />
      {children}
      {begun.restored && (
        <Alert variant="light" color="blue" icon={<History />} title="Unsaved changes restored" data-testid="restored">
          Your changes were kept in this tab. Save them, or discard them to return to the saved version.
        </Alert>
      )}
      {workflow !== null && name !== null && name !== workflow && (
        <Alert variant="light" color="orange" title="The name has changed" data-testid="renamed">
          Saving creates the workflow <Code>{name}</Code>. The workflow <Code>{workflow}</Code> does not change.
        </Alert>
      )}
      {saving.error !== null && <ProblemPanel error={saving.error} />}
      <div className={classes["tall"]}>
        <section className={classes["pane"]} aria-label="Definition">
          <div className={classes["grow"]}>
            <YamlEditor
              editor={editor}
              initial={begun.text}
              label="Definition"
              knowledge={knowledge}
              checked={checked}
              stretch={stretches.find((each) => each.name === step) ?? null}
              onChange={write}
              onPlace={(place, written) => select(stepAt(stepStretches(written), place))}
              onSave={save}
            />
          </div>
          {checked.error !== null && !(checked.error instanceof NoResponseError) && (
            <ProblemPanel error={checked.error} />
          )}
          <FindingList checked={checked} onGo={go} />
        </section>
        <section className={classes["pane"]} aria-label="Graph">
          <div className={classes["grow"]}>
            {graph.shown !== null && <GraphPane graph={graph.shown} selected={step} onSelect={select} />}
          </div>
          <Text size="sm" c="dimmed" data-testid="graph-state">
            {GRAPHS[graph.is](version)}
          </Text>
        </section>
      </div>
      <LeaveWarning isUnsaved={useCallback(() => unsaved.current, [])} kept={kept} />
      <SaveConflictDialog
        conflict={saving.conflict}
        workflow={workflow}
        onCancel={saving.cancel}
        onSave={saving.saveAnyway}
      />
    </Stack>
  );
}

function useKnowledge(): Knowledge {
  const schema = useQuery(schemaQuery).data;
  const agents = useQuery(agentNamesQuery).data;
  const workflows = useQuery(workflowNamesQuery).data;
  return useMemo(
    () => ({ schema: schema ?? {}, agents: agents ?? [], workflows: workflows ?? [] }),
    [schema, agents, workflows],
  );
}

/** Why the text cannot be saved now, or null if it can or if only saving can tell. */
function refusal({ is, validation, error }: Checked): string | null {
  if (is === "unanswered") {
    return error === null || error instanceof NoResponseError
      ? "Not validated, because Trunkline is not responding. You can save after validation."
      : "You can save after validation.";
  }
  return is === "current" && (validation?.errors.length ?? 0) > 0 ? "Fix the errors to save." : null;
}

const GRAPHS = {
  written: () => "The graph matches your text.",
  asked: () => "The graph is being updated.",
  unanswered: () => "The graph is outdated, because your text is not validated yet.",
  earlier: () => "The graph shows the last valid text.",
  saved: (version: number | null) => `Your text has errors, so the graph shows the saved version ${version}.`,
  none: () => "The graph appears when the definition is valid.",
};

/** While the text is invalid, the last valid graph is shown, or that of the saved version. */
function useGraph(
  { validation, is }: Checked,
  workflow: string | null,
  version: number | null,
): { shown: Graph | null; is: keyof typeof GRAPHS } {
  const last = useRef<Graph | null>(null);
  const written = validation?.graph ?? null;
  if (written !== null) last.current = written;
  const isWanted = validation !== null && last.current === null && workflow !== null && version !== null;
  const saved = useQuery({ ...graphQuery(workflow ?? "", version ?? 0), enabled: isWanted }).data ?? null;
  const shown = last.current ?? (isWanted ? saved : null);
  if (shown === null) return { shown, is: "none" };
  if (is !== "current") return { shown, is };
  return { shown, is: last.current === null ? "saved" : written === null ? "earlier" : "written" };
}
