/** Creates a workflow, starting from a small template that calls the first registered agent. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Loading } from "../app/Loading.tsx";
import { usePageTitle } from "../app/title.ts";
import { Editor } from "./editor/Editor.tsx";
import { scalar } from "./language/scalar.ts";
import { agentNamesQuery } from "./queries.ts";

export function NewWorkflowPage() {
  usePageTitle("New workflow");
  const agents = useQuery(agentNamesQuery);
  const [step, setStep] = useState<string | null>(null);
  if (agents.isPending) return <Loading />;
  return (
    <Editor
      heading="New workflow"
      workflow={null}
      text={template(agents.data?.[0] ?? "MyAgent")}
      version={null}
      latest={null}
      step={step}
      onStep={setStep}
    />
  );
}

function template(agent: string): string {
  return `name: my-workflow
description: What this workflow does.

input:
  type: object
  required: [topic]
  properties:
    topic: {type: string}

steps:
  first:
    agent: ${scalar(agent)}
    input: {text: "Write about \${ input.topic }"}

output: \${ steps.first.output.text }
`;
}
