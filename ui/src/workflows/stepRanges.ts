/** Finds the positions of steps in the text of a definition, in YAML or JSON, even if it is incomplete. */

import { yamlLanguage } from "@codemirror/lang-yaml";

import type { TextRange } from "../code/markedRange.ts";

export interface StepRange extends TextRange {
  readonly name: string;
}

type Node = ReturnType<typeof yamlLanguage.parser.parse>["topNode"];

export function stepStretches(text: string): readonly StepRange[] {
  return pairsUnder(text, ["steps"]).map((pair) => ({ name: keyOf(pair, text), from: pair.from, to: pair.to }));
}

export function stepAt(stretches: readonly StepRange[], place: number): string | null {
  return stretches.find(({ from, to }) => from <= place && place <= to)?.name ?? null;
}

/** The keys of the mapping at a path. */
export function keysUnder(text: string, path: readonly string[]): readonly string[] {
  return pairsUnder(text, path).map((pair) => keyOf(pair, text));
}

function pairsUnder(text: string, path: readonly string[]): readonly Node[] {
  let pairs = pairsOf(yamlLanguage.parser.parse(text).topNode.getChild("Document"));
  for (const key of path) pairs = pairsOf(pairs.find((pair) => keyOf(pair, text) === key));
  return pairs;
}

/** The pairs of a mapping node. */
function pairsOf(node: Node | null | undefined): readonly Node[] {
  const mapping = node?.getChild("BlockMapping") ?? node?.getChild("FlowMapping");
  return mapping?.getChildren("Pair") ?? [];
}

function keyOf(pair: Node, text: string): string {
  const key = pair.getChild("Key");
  return key === null ? "" : text.slice(key.from, key.to).replace(/^["']|["']$/g, "");
}
