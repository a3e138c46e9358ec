/** The extensions that all code editors share: theme, line numbers, keys, and the nonce for styles. */

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, foldKeymap, indentUnit } from "@codemirror/language";
import { EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";

import { highlight } from "./highlight.ts";
import { replaceSelection } from "./replaceSelection.ts";

export type Language = "yaml" | "json" | "text";

const LANGUAGES: Readonly<Record<Language, () => Extension>> = { yaml, json, text: () => [] };

const theme = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", color: "var(--mantine-color-text)", backgroundColor: "transparent" },
  // The surrounding frame shows the focus.
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mantine-font-family-monospace)", lineHeight: "1.55", overflow: "auto" },
  ".cm-gutters": {
    backgroundColor: "var(--code-background)",
    color: "var(--code-line-number)",
    borderRight: "1px solid var(--mantine-color-default-border)",
  },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--code-active-line)" },
  ".cm-cursor": { borderLeftColor: "var(--mantine-color-text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--code-selection)",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--mantine-color-body)",
    color: "var(--mantine-color-text)",
    border: "1px solid var(--mantine-color-default-border)",
    borderRadius: "var(--mantine-radius-sm)",
    boxShadow: "var(--mantine-shadow-md)",
    maxWidth: "28rem",
  },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mantine-font-family-monospace)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--mantine-primary-color-filled)",
    color: "var(--mantine-primary-color-contrast)",
  },
  ".cm-completionDetail": { color: "var(--mantine-color-dimmed)", fontStyle: "normal" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-completionInfo": { padding: "6px 10px", fontFamily: "var(--mantine-font-family)" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-diagnostic": { padding: "4px 10px", fontFamily: "var(--mantine-font-family)" },
  ".cm-foldPlaceholder": { backgroundColor: "transparent", color: "var(--mantine-color-dimmed)" },
  ".cm-changedLine, &.cm-merge-b .cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--code-added)" },
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk, .cm-deletedLine": { backgroundColor: "var(--code-removed)" },
  "&.cm-merge-b .cm-changedText, .cm-changedText": { background: "var(--code-added-text)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": { background: "var(--code-removed-text)" },
  ".cm-collapsedLines": {
    background: "var(--mantine-color-default-hover)",
    color: "var(--mantine-color-dimmed)",
    fontFamily: "var(--mantine-font-family)",
  },
  // Few fonts have the default symbol.
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: '"⋯"' },
});

/** Needed from the start: styles without the nonce are blocked. */
export const nonced: Extension = EditorView.cspNonce.of(
  document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "",
);

/** Read-only code that can be focused and navigated with the keyboard. */
export function readable(language: Language, label: string, dark: boolean): Extension {
  return [
    common(language, label, dark),
    EditorState.readOnly.of(true),
    EditorView.contentAttributes.of({ "aria-readonly": "true" }),
    keymap.of([...defaultKeymap, ...foldKeymap]),
  ];
}

export function writable(language: Language, label: string, dark: boolean): Extension {
  return [
    common(language, label, dark),
    history(),
    bracketMatching(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    indentUnit.of("  "),
    // Tab indents; Escape and then Tab leaves the editor.
    keymap.of([...defaultKeymap, ...historyKeymap, ...foldKeymap, indentWithTab]),
  ];
}

function common(language: Language, label: string, dark: boolean): Extension {
  return [
    nonced,
    EditorView.darkTheme.of(dark),
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
    EditorView.lineWrapping,
    LANGUAGES[language](),
    lineNumbers(),
    foldGutter(),
    highlightSpecialChars(),
    drawSelection(),
    replaceSelection,
    highlight,
    theme,
  ];
}
