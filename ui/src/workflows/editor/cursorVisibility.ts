/** Keeps the cursor line visible when the editor shrinks, for example when findings appear below it. */

import { EditorView } from "@codemirror/view";

/** Returns a function that stops it. */
export function keepCursorVisible(view: EditorView, frame: HTMLElement): () => void {
  let height = frame.clientHeight;
  const observer = new ResizeObserver(() => {
    const before = height;
    height = frame.clientHeight;
    if (height >= before || !view.hasFocus) return;
    const { head } = view.state.selection.main;
    const caret = view.coordsAtPos(head);
    const top = frame.getBoundingClientRect().top;
    // Do nothing if the user has scrolled away from the cursor.
    if (caret === null || caret.bottom < top || caret.top > top + before) return;
    view.dispatch({ effects: EditorView.scrollIntoView(head, { y: "nearest" }) });
  });
  observer.observe(frame);
  return () => observer.disconnect();
}
