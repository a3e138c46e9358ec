/**
 * Typing over a selection, done by the editor itself.
 *
 * Left to the browser, a letter in place of several lines may be given the look of what it replaces, as a style written
 * into the text, which the page's policy refuses.
 */

import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";

export const replaceSelection: Extension = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    if (view.state.readOnly) return true;
    const { main } = view.state.selection;
    const text = event.data;
    // Text that is being composed stays with the browser: taking it away would end the composition.
    if (event.inputType !== "insertText" || text === null || main.empty || event.isComposing || view.compositionStarted)
      return false;
    const insert = () =>
      view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    const others = view.state.facet(EditorView.inputHandler);
    if (!others.some((handle) => handle(view, main.from, main.to, text, insert))) view.dispatch(insert());
    return true;
  },
});
