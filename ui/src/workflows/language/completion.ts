/** The completions of the editor, from the published schema, the registered agents and workflows, and the text itself. */

import {
  type Completion,
  type CompletionContext,
  type CompletionResult,
  type CompletionSource,
  insertCompletionText,
  startCompletion,
} from "@codemirror/autocomplete";
import type { EditorView } from "@codemirror/view";

import { keysUnder } from "../stepRanges.ts";
import { type Place, placeAt } from "./cursorContext.ts";
import { scalar } from "./scalar.ts";
import { ITEM, keysAt, type Schema, valuesAt } from "./schemaLookup.ts";

export interface Knowledge {
  readonly schema: Schema;
  readonly agents: readonly string[];
  readonly workflows: readonly string[];
}

const OF_STEPS: readonly Completion[] = [
  { label: "output", type: "property", info: "The step's output, or null." },
  { label: "output.text", type: "property", info: "The output as text." },
  { label: "output.data", type: "property", info: "The output as structured data." },
  { label: "status", type: "property", info: "The status: COMPLETED, SKIPPED or FAILED." },
  { label: "error", type: "property", info: "The error with its code and message, or null." },
];

/** `knowledge` is called for each completion, because the names change over time. */
export function completions(knowledge: () => Knowledge): CompletionSource {
  return (context: CompletionContext): CompletionResult | null => {
    const text = context.state.doc.toString();
    const place = placeAt(text, context.pos);
    if (place === null || (place.word === "" && !context.explicit && !asksFor(text, context.pos))) return null;
    if (place.kind === "expression") return expressions(place, text);
    const options = place.kind === "key" ? keys(place, knowledge()) : values(place, text, knowledge());
    return options.length === 0 ? null : { from: place.from, options, validFor: /^[\w$ -]*$/ };
  };
}

/** After `agent: `, `[` and the like, completion starts without typed text. */
function asksFor(text: string, at: number): boolean {
  return /(:\s|- |[[{,]\s?)$/.test(text.slice(Math.max(0, at - 2), at));
}

function keys({ path, present, flow }: Place, { schema }: Knowledge): readonly Completion[] {
  return keysAt(schema, path, present).map(({ name, description, required, nested }) => ({
    label: name,
    type: "property",
    detail: required ? "required" : "",
    ...(description === "" ? {} : { info: description }),
    apply: (view: EditorView, _: Completion, from: number, to: number) => {
      view.dispatch(insertCompletionText(view.state, nested && !flow ? `${name}:` : `${name}: `, from, to));
      // Offer the possible values next.
      startCompletion(view);
    },
    boost: required ? 1 : 0,
  }));
}

function values(place: Place, text: string, knowledge: Knowledge): readonly Completion[] {
  const { path } = place;
  const { scopes, step, inside } = scopeOf(path);
  const last = path.at(-1);
  if (step !== null && inside.length === 1 && last === "agent") return named(knowledge.agents, "class", "agent");
  if (step !== null && inside.length === 1 && last === "workflow")
    return named(knowledge.workflows, "namespace", "workflow");
  const isNeed = inside.length === 2 && inside[0] === "needs" && last === ITEM;
  if (step !== null && (isNeed || (inside[0] === "on_error" && last === "goto"))) {
    const others = keysUnder(text, scopes.at(-1)!).filter((name) => name !== step);
    return named(others, "variable", "step");
  }
  return valuesAt(knowledge.schema, path).map(({ text: label, detail }) => ({ label, detail, type: "enum" }));
}

/** The lists of steps around a place, from the outside in; the step, and the keys inside it that lead to the place. */
function scopeOf(path: readonly string[]): {
  readonly scopes: readonly (readonly string[])[];
  readonly step: string | null;
  readonly inside: readonly string[];
} {
  const scopes: (readonly string[])[] = [];
  let at = 0;
  while (path[at] === "steps" && path.length > at + 1) {
    scopes.push(path.slice(0, at + 1));
    at += 2;
    // A branch of a switch has a list of steps, too.
    if (path[at] === "switch" && path[at + 2] === "steps") at += 2;
  }
  return { scopes, step: at === 0 ? null : path[at - 1]!, inside: path.slice(at) };
}

function named(names: readonly string[], type: string, detail: string): readonly Completion[] {
  return names.map((name) => ({ label: name, type, detail, apply: scalar(name) }));
}

function expressions({ path, word, from }: Place, text: string): CompletionResult | null {
  const parts = word.split(".");
  const begun = from + word.length - parts.at(-1)!.length;
  const result = (options: readonly Completion[], start = begun): CompletionResult => ({
    from: start,
    options,
    validFor: /^\w*$/,
  });
  if (parts.length === 1) return result(roots(path, text));
  if (parts[0] === "input" && parts.length === 2) {
    return result(keysUnder(text, ["input", "properties"]).map((label) => ({ label, type: "property" })));
  }
  if (parts[0] !== "steps") return null;
  if (parts.length === 2) {
    const { scopes } = scopeOf(path);
    const around = new Set(scopes.map((scope) => path[scope.length]));
    const readable = scopes.length === 0 ? [["steps"]] : scopes;
    const others = new Set(readable.flatMap((scope) => keysUnder(text, scope)).filter((name) => !around.has(name)));
    return result([...others].map((label) => ({ label, type: "variable" })));
  }
  return parts.length === 3 ? result(OF_STEPS) : null;
}

function roots(path: readonly string[], text: string): readonly Completion[] {
  const inLoop = scopeOf(path).scopes.some((scope) =>
    keysUnder(text, path.slice(0, scope.length + 1)).includes("for_each"),
  );
  const inRounds = scopeOf(path).scopes.some((scope) =>
    keysUnder(text, path.slice(0, scope.length + 1)).includes("repeat"),
  );
  return [
    { label: "input", type: "variable", info: "The run's input." },
    { label: "steps", type: "variable", info: "The steps by name. A step waits for the steps that it refers to." },
    { label: "run.id", type: "variable", info: "The run's ID." },
    {
      label: "run.correlation_id",
      type: "variable",
      info: "The correlation ID of the run, which logs and requests to agents carry.",
    },
    ...(inRounds
      ? [
          { label: "round", type: "variable", info: "The number of the current round, starting at 1." },
          { label: "previous.steps", type: "variable", info: "The steps of the round before, by name." },
        ]
      : []),
    ...(inLoop
      ? [
          { label: "item", type: "variable", info: "The current item of the list." },
          { label: "index", type: "variable", info: "The index of the current item, starting at 0." },
        ]
      : []),
  ];
}
