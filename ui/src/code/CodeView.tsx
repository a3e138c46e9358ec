/** Read-only code with highlighting, line numbers and folding. */

import { EditorView } from "@codemirror/view";
import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useEffectEvent, useRef, useState } from "react";

import classes from "./code.module.css";
import { mark, marked, type TextRange } from "./markedRange.ts";
import { type Language, readable } from "./setup.ts";

export function CodeView({
  text,
  language,
  label,
  stretch = null,
  onPlace,
}: {
  text: string;
  language: Language;
  label: string;
  stretch?: TextRange | null;
  /** Called with the position of the cursor. */
  onPlace?: (place: number) => void;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const [view, setView] = useState<EditorView | null>(null);
  const dark = useComputedColorScheme("light") === "dark";
  const place = useEffectEvent((at: number) => onPlace?.(at));

  useEffect(() => {
    const made = new EditorView({
      doc: text,
      parent: frame.current!,
      extensions: [
        readable(language, label, dark),
        marked,
        EditorView.updateListener.of((update) => {
          if (update.transactions.some((each) => each.isUserEvent("select"))) place(update.state.selection.main.head);
        }),
      ],
    });
    setView(made);
    return () => {
      made.destroy();
      setView(null);
    };
  }, [text, language, label, dark]);

  const from = stretch?.from;
  const to = stretch?.to;
  useEffect(() => {
    if (view !== null) mark(view, from === undefined || to === undefined ? null : { from, to });
  }, [view, from, to]);

  return <div ref={frame} className={classes["frame"]} data-testid="code" />;
}
