/** The code editor of `JsonEditor`, in a separate chunk. */

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { Compartment } from "@codemirror/state";
import { drawSelection, EditorView, keymap } from "@codemirror/view";
import { useEffect, useEffectEvent, useRef } from "react";

import { highlight } from "../code/highlight.ts";
import { replaceSelection } from "../code/replaceSelection.ts";
import classes from "./JsonCode.module.css";

interface JsonCodeProps {
  readonly label: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly invalid: boolean;
  readonly describedBy: string;
}

const LOOK = EditorView.theme({
  "&": { fontSize: "13px", color: "var(--mantine-color-text)", backgroundColor: "transparent" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { minHeight: "4rem", padding: "6px 0" },
  ".cm-cursor": { borderLeftColor: "var(--mantine-color-text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--code-selection)",
  },
  ".cm-scroller": {
    fontFamily: "var(--mantine-font-family-monospace)",
    lineHeight: "1.5",
    maxHeight: "20rem",
    overflow: "auto",
  },
});

const nonce = () => document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";

export default function JsonCode({ label, text, onText, invalid, describedBy }: JsonCodeProps) {
  const frame = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const attributes = useRef(new Compartment());
  const told = useEffectEvent(onText);
  const beginning = useEffectEvent(() => text);

  useEffect(() => {
    const editor = new EditorView({
      parent: frame.current!,
      doc: beginning(),
      extensions: [
        EditorView.cspNonce.of(nonce()),
        history(),
        drawSelection(),
        replaceSelection,
        indentOnInput(),
        indentUnit.of("  "),
        bracketMatching(),
        closeBrackets(),
        json(),
        highlight,
        // The browser handles Tab: in a form it moves to the next field.
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap]),
        EditorView.lineWrapping,
        EditorView.updateListener.of((update) => {
          if (update.docChanged) told(update.state.doc.toString());
        }),
        attributes.current.of([]),
        LOOK,
      ],
    });
    view.current = editor;
    return () => editor.destroy();
  }, []);

  useEffect(() => {
    const editor = view.current!;
    const present = editor.state.doc.toString();
    if (present !== text) editor.dispatch({ changes: { from: 0, to: present.length, insert: text } });
  }, [text]);

  useEffect(() => {
    const shown = EditorView.contentAttributes.of({
      "aria-label": label,
      "aria-describedby": describedBy,
      "aria-invalid": String(invalid),
    });
    view.current!.dispatch({ effects: attributes.current.reconfigure(shown) });
  }, [label, describedBy, invalid]);

  return <div ref={frame} className={classes["editor"]} data-invalid={invalid || undefined} />;
}
