/** The text editor of a definition, with completion and the findings of the server. */

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { Compartment } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { useComputedColorScheme } from "@mantine/core";
import { type RefObject, useEffect, useEffectEvent, useRef } from "react";

import classes from "../../code/code.module.css";
import { mark, marked, type TextRange } from "../../code/markedRange.ts";
import { nonced, writable } from "../../code/setup.ts";
import { completions, type Knowledge } from "../language/completion.ts";
import { hints } from "../language/hints.ts";
import { keepCursorVisible } from "./cursorVisibility.ts";
import { showFindings } from "./diagnostics.ts";
import type { Checked } from "./validation.ts";

export function YamlEditor({
  editor,
  initial,
  label,
  knowledge,
  checked,
  stretch,
  onChange,
  onPlace,
  onSave,
}: {
  /** Lets the caller move the cursor. */
  editor: RefObject<EditorView | null>;
  initial: string;
  label: string;
  knowledge: Knowledge;
  checked: Checked;
  stretch: TextRange | null;
  onChange: (text: string) => void;
  onPlace: (place: number, text: string) => void;
  onSave: () => void;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const appearance = useRef(new Compartment());
  const dark = useComputedColorScheme("light") === "dark";
  const change = useEffectEvent(onChange);
  const move = useEffectEvent(onPlace);
  const save = useEffectEvent(onSave);
  const known = useRef(knowledge);
  useEffect(() => {
    known.current = knowledge;
  });

  useEffect(() => {
    const made = new EditorView({
      doc: initial,
      parent: frame.current!,
      extensions: [
        keymap.of([
          { key: "Mod-s", preventDefault: true, run: () => (save(), true) },
          ...completionKeymap,
          ...closeBracketsKeymap,
          ...lintKeymap,
        ]),
        nonced,
        appearance.current.of([]),
        autocompletion({ override: [completions(() => known.current)], icons: false }),
        hints(() => known.current.schema),
        closeBrackets(),
        lintGutter(),
        marked,
        EditorView.updateListener.of((update) => {
          if (update.docChanged) change(update.state.doc.toString());
          if (update.selectionSet || update.docChanged) {
            move(update.state.selection.main.head, update.state.doc.toString());
          }
        }),
      ],
    });
    editor.current = made;
    const leave = keepCursorVisible(made, frame.current!);
    return () => {
      leave();
      made.destroy();
      editor.current = null;
    };
  }, [editor, initial]);

  useEffect(() => {
    editor.current?.dispatch({ effects: appearance.current.reconfigure(writable("yaml", label, dark)) });
  }, [editor, initial, label, dark]);

  // Marks move with the text until the next validation. A result for another text would misplace them.
  const { validation, text } = checked;
  useEffect(() => {
    const view = editor.current;
    if (view !== null && validation !== null && view.state.doc.toString() === text) showFindings(view, validation);
  }, [editor, validation, text]);

  const from = stretch?.from;
  const to = stretch?.to;
  useEffect(() => {
    if (editor.current !== null) mark(editor.current, from === undefined || to === undefined ? null : { from, to });
  }, [editor, from, to]);

  return <div ref={frame} className={classes["frame"]} data-testid="editor" />;
}
