/**
 * Lets the editor itself replace a selection with typed text.
 *
 * The browser would copy the look of the replaced text as an inline style, which the content security policy blocks.
 */

import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";

export const replaceSelection: Extension = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    if (view.state.readOnly) return true;
    const { main } = view.state.selection;
    const text = event.data;
    // Leave composed text to the browser: handling it here would end the composition.
    if (event.inputType !== "insertText" || text === null || main.empty || event.isComposing || view.compositionStarted)
      return false;
    const insert = () =>
      view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    const others = view.state.facet(EditorView.inputHandler);
    if (!others.some((handle) => handle(view, main.from, main.to, text, insert))) view.dispatch(insert());
    return true;
  },
});
