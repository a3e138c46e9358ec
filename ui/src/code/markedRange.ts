/** A highlighted range of lines, independent of the editor's selection. */

import { type Extension, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView } from "@codemirror/view";

import classes from "./code.module.css";

export interface TextRange {
  readonly from: number;
  readonly to: number;
}

const line = Decoration.line({ class: classes["marked"]!, attributes: { "data-marked": "true" } });
const change = StateEffect.define<TextRange | null>();

export const marked: Extension = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (present, transaction) => {
    for (const effect of transaction.effects) {
      if (effect.is(change)) return linesOf(transaction.state.doc, effect.value);
    }
    return present.map(transaction.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** Highlights the lines and scrolls to them unless they are visible. */
export function mark(view: EditorView, stretch: TextRange | null): void {
  const effects: StateEffect<unknown>[] = [change.of(stretch)];
  if (stretch !== null && stretch.to <= view.state.doc.length && !holds(stretch, view.state.selection.main.head)) {
    effects.push(EditorView.scrollIntoView(stretch.from, { y: "start", yMargin: 40 }));
  }
  view.dispatch({ effects });
}

function holds(stretch: TextRange, place: number): boolean {
  return stretch.from <= place && place <= stretch.to;
}

function linesOf(doc: EditorView["state"]["doc"], stretch: TextRange | null): DecorationSet {
  if (stretch === null || stretch.to > doc.length) return Decoration.none;
  const builder = new RangeSetBuilder<Decoration>();
  const last = doc.lineAt(Math.max(stretch.from, stretch.to - 1)).number;
  for (let number = doc.lineAt(stretch.from).number; number <= last; number++) {
    const start = doc.line(number).from;
    builder.add(start, start, line);
  }
  return builder.finish();
}
