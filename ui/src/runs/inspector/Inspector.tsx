/** The inspector of the run, or of the selected step, attempt or item. */

import type { RunModel } from "../model.ts";
import { RunInspector } from "./RunInspector.tsx";
import { StepInspector } from "./StepInspector.tsx";

export interface InspectorProps {
  readonly run: string;
  readonly model: RunModel;
  readonly step: string | null;
  readonly attempt: number | null;
  /** The name of a tab, optionally with the format of its value: `output.json`. */
  readonly tab: string | null;
  readonly onTab: (tab: string) => void;
  /** Null for the run itself. */
  readonly onSelect: (step: string | null, attempt: number | null) => void;
}

export function Inspector(props: InspectorProps) {
  if (props.step === null) return <RunInspector {...props} />;
  return <StepInspector key={props.step} {...props} step={props.step} />;
}
