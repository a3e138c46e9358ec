/** Keeps the line that is being written in sight when the room for the text shrinks: findings appear below it. */

import { EditorView } from "@codemirror/view";

/** Returns what ends it. */
export function keepCaretInSight(view: EditorView, frame: HTMLElement): () => void {
  let height = frame.clientHeight;
  const observer = new ResizeObserver(() => {
    const before = height;
    height = frame.clientHeight;
    if (height >= before || !view.hasFocus) return;
    const { head } = view.state.selection.main;
    const caret = view.coordsAtPos(head);
    const top = frame.getBoundingClientRect().top;
    // Whoever has scrolled away from it stays where they are.
    if (caret === null || caret.bottom < top || caret.top > top + before) return;
    view.dispatch({ effects: EditorView.scrollIntoView(head, { y: "nearest" }) });
  });
  observer.observe(frame);
  return () => observer.disconnect();
}
