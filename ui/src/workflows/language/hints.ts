/** Tooltips for keys, from the descriptions in the published schema. */

import type { Extension } from "@codemirror/state";
import { hoverTooltip } from "@codemirror/view";

import classes from "../workflows.module.css";
import { placeAt } from "./cursorContext.ts";
import { descriptionAt, type Schema } from "./schemaLookup.ts";

export function hints(schema: () => Schema): Extension {
  return hoverTooltip((view, at) => {
    const word = view.state.wordAt(at);
    if (word === null || !/^["']?\s*:/.test(view.state.sliceDoc(word.to, word.to + 8))) return null;
    const place = placeAt(view.state.doc.toString(), word.to);
    if (place?.kind !== "key") return null;
    const description = descriptionAt(schema(), [...place.path, place.word]);
    if (description === "") return null;
    const dom = document.createElement("div");
    dom.className = classes["hint"]!;
    dom.textContent = description;
    return { pos: word.from, end: word.to, above: true, create: () => ({ dom }) };
  });
}
