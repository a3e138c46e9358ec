/**
 * Highlighting for YAML and JSON, including expressions (`${ … }`).
 *
 * It uses CSS classes instead of CodeMirror's highlighter: `code.module.css` has colours for both themes with a contrast
 * of at least 4.5 : 1.
 */

import { syntaxTree } from "@codemirror/language";
import { type Range, RangeSet } from "@codemirror/state";
import { Decoration, type DecorationSet, type EditorView, ViewPlugin, type ViewUpdate } from "@codemirror/view";

import classes from "./code.module.css";

const key = Decoration.mark({ class: classes["key"]! });
const text = Decoration.mark({ class: classes["text"]! });
const atom = Decoration.mark({ class: classes["atom"]! });
const comment = Decoration.mark({ class: classes["comment"]! });
const expression = Decoration.mark({ class: classes["expression"]! });

const MARKS: Readonly<Record<string, Decoration>> = {
  Key: key,
  PropertyName: key,
  QuotedLiteral: text,
  BlockLiteralContent: text,
  String: text,
  Number: atom,
  True: atom,
  False: atom,
  Null: atom,
  Comment: comment,
  Anchor: atom,
  Alias: atom,
  Tag: atom,
};
const ATOM = /^(?:true|false|null|~|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)$/;
const EXPRESSION = /\$\{[^}]*\}?/g;

export const highlight = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet;

    constructor(view: EditorView) {
      this.decorations = marksOf(view);
    }

    update(update: ViewUpdate): void {
      if (update.docChanged || update.viewportChanged || syntaxTree(update.startState) !== syntaxTree(update.state)) {
        this.decorations = marksOf(update.view);
      }
    }
  },
  { decorations: (plugin) => plugin.decorations },
);

function marksOf(view: EditorView): DecorationSet {
  const marks: Range<Decoration>[] = [];
  for (const { from, to } of view.visibleRanges) {
    syntaxTree(view.state).iterate({
      from,
      to,
      enter: (node) => {
        const mark = node.name === "Literal" ? literal(view.state.sliceDoc(node.from, node.to)) : MARKS[node.name];
        if (mark !== undefined && node.from < node.to) marks.push(mark.range(node.from, node.to));
        return node.name !== "Key";
      },
    });
    for (const found of view.state.sliceDoc(from, to).matchAll(EXPRESSION)) {
      marks.push(expression.range(from + found.index, from + found.index + found[0].length));
    }
  }
  return RangeSet.of(marks, true);
}

function literal(value: string): Decoration {
  return ATOM.test(value) ? atom : text;
}
