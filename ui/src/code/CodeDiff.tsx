/** The differences between two texts: side by side, or unified on narrow screens. */

import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorView } from "@codemirror/view";
import { useComputedColorScheme } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useEffect, useRef } from "react";

import classes from "./code.module.css";
import { type Language, readable } from "./setup.ts";

export interface Side {
  readonly text: string;
  readonly label: string;
}

const COLLAPSE = { margin: 3, minSize: 6 };

export function CodeDiff({ before, after, language }: { before: Side; after: Side; language: Language }) {
  const { text: oldText, label: oldLabel } = before;
  const { text: newText, label: newLabel } = after;
  const frame = useRef<HTMLDivElement>(null);
  const dark = useComputedColorScheme("light") === "dark";
  const narrow = useMediaQuery("(max-width: 62em)", false, { getInitialValueInEffect: false });

  useEffect(() => {
    const parent = frame.current!;
    const shown = (doc: string, label: string) => ({ doc, extensions: readable(language, label, dark) });
    const [a, b] = [shown(oldText, oldLabel), shown(newText, newLabel)];
    if (!narrow) {
      const view = new MergeView({ a, b, parent, collapseUnchanged: COLLAPSE });
      return () => view.destroy();
    }
    const merge = unifiedMergeView({ original: oldText, mergeControls: false, collapseUnchanged: COLLAPSE });
    const view = new EditorView({ doc: b.doc, parent, extensions: [b.extensions, merge] });
    return () => view.destroy();
  }, [oldText, oldLabel, newText, newLabel, language, dark, narrow]);

  return <div ref={frame} className={classes["diff"]} data-testid="diff" />;
}
