/** A definition being written, its graph beside it, and what the server has to say. */

import type { EditorView } from "@codemirror/view";
import { Alert, Button, Code, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { History, Save, Undo2 } from "lucide-react";
import { type ReactNode, useCallback, useMemo, useRef, useState } from "react";

import { NoAnswer } from "../../api/problem.ts";
import { useMay } from "../../app/access.ts";
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
import { DoubtDialog } from "./DoubtDialog.tsx";
import { dropDraft, keepDraft, readDraft } from "./drafts.ts";
import { FindingList } from "./FindingList.tsx";
import { LeaveWarning } from "./LeaveWarning.tsx";
import { useSaving } from "./useSaving.ts";
import { type Checked, useValidation } from "./validation.ts";
import { YamlEditor } from "./YamlEditor.tsx";

export interface EditorProps {
  readonly heading: string;
  /** The workflow that is being changed; null: a new one. */
  readonly workflow: string | null;
  /** What one begins with. */
  readonly text: string;
  /** The version that has this text. */
  readonly version: number | null;
  /** The latest version there is. */
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
  const may = useMay("admin");

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
    // The same text would leave the editor as it is.
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
      <NotAllowed may={may} title="What you write here cannot be saved" />
      {children}
      {begun.restored && (
        <Alert
          variant="light"
          color="blue"
          icon={<History />}
          title="Your unsaved changes are still here"
          data-testid="restored"
        >
          They were kept in this tab. Save them, or discard them to begin again from the saved version.
        </Alert>
      )}
      {workflow !== null && name !== null && name !== workflow && (
        <Alert variant="light" color="orange" title="The name has changed" data-testid="renamed">
          Saving makes a workflow <Code>{name}</Code>; <Code>{workflow}</Code> stays as it is.
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
          {checked.error !== null && !(checked.error instanceof NoAnswer) && <ProblemPanel error={checked.error} />}
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
      <DoubtDialog doubt={saving.doubt} workflow={workflow} onCancel={saving.cancel} onSave={saving.saveAnyway} />
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

/** Why it cannot be saved as it stands; null: it can, or saving finds out. */
function refusal({ is, validation, error }: Checked): string | null {
  if (is === "unanswered") {
    return error === null || error instanceof NoAnswer
      ? "Not checked: Trunkline does not answer. It can be saved once it is checked."
      : "It can be saved once it is checked.";
  }
  return is === "current" && (validation?.errors.length ?? 0) > 0 ? "It can be saved once there is no error." : null;
}

const GRAPHS = {
  written: () => "This is the graph of what you have written.",
  asked: () => "The graph follows what you write.",
  unanswered: () => "This is the graph as it was before: what you have written is not checked.",
  earlier: () => "This is the graph as it was before the errors.",
  saved: (version: number | null) =>
    `What you have written has errors: this is the graph of version ${version}, as it is saved.`,
  none: () => "The graph appears once the definition is valid.",
};

/** While the text is wrong, the last graph there was stays; where there was none yet, that of what is saved. */
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
