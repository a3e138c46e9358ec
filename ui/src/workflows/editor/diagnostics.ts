/** Converts the findings of the server to editor diagnostics. */

import { type Diagnostic, setDiagnostics } from "@codemirror/lint";
import type { Text } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";

import type { Finding, Validation } from "../queries.ts";

export function showFindings(view: EditorView, { errors, warnings }: Validation): void {
  const { doc } = view.state;
  const marks = [
    ...errors.map((finding) => markOf(doc, finding, "error")),
    ...warnings.map((finding) => markOf(doc, finding, "warning")),
  ];
  view.dispatch(setDiagnostics(view.state, marks));
}

export function offsetOf(doc: Text, { line, column }: Finding): number {
  if (line === null || line === undefined) return 0;
  const found = doc.line(Math.min(Math.max(1, line), doc.lines));
  // The server counts code points, the editor UTF-16 code units.
  const before = Array.from(found.text)
    .slice(0, (column ?? 1) - 1)
    .join("");
  return found.from + before.length;
}

function markOf(doc: Text, finding: Finding, severity: "error" | "warning"): Diagnostic {
  const from = offsetOf(doc, finding);
  const line = doc.lineAt(from);
  const word = /^["']?[\w$.-]+/.exec(line.text.slice(from - line.from))?.[0].length ?? 0;
  return { from, to: Math.min(line.to, from + Math.max(1, word)), severity, message: finding.message };
}
