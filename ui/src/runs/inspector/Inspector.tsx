/** What is known of the run, or of the step, attempt or item that is selected: one tab for each kind of knowledge. */

import type { RunModel } from "../model.ts";
import { RunInspector } from "./RunInspector.tsx";
import { StepInspector } from "./StepInspector.tsx";

export interface InspectorProps {
  readonly run: string;
  readonly model: RunModel;
  readonly step: string | null;
  readonly attempt: number | null;
  /** A name of a tab; after a dot, the form in which it shows its value: `output.json`. */
  readonly tab: string | null;
  readonly onTab: (tab: string) => void;
  /** Null: the run itself. */
  readonly onSelect: (step: string | null, attempt: number | null) => void;
}

export function Inspector(props: InspectorProps) {
  if (props.step === null) return <RunInspector {...props} />;
  return <StepInspector key={props.step} {...props} step={props.step} />;
}
