/** A definition as YAML next to its graph, with a shared selection. */

import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";

import { Loading } from "../app/Loading.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { workflowRoute } from "../app/router.tsx";
import { CodeView } from "../code/CodeView.tsx";
import { GraphPane } from "./GraphPane.tsx";
import { graphQuery, type Workflow } from "./queries.ts";
import { stepAt, stepStretches } from "./stepRanges.ts";
import { textOf } from "./definitionText.ts";
import classes from "./workflows.module.css";

export function DefinitionPanes({ workflow }: { workflow: Workflow }) {
  const { step } = workflowRoute.useSearch();
  const navigate = useNavigate({ from: "/workflows/$workflow" });
  const text = textOf(workflow);
  const stretches = useMemo(() => stepStretches(text), [text]);
  const graph = useQuery(graphQuery(workflow.name, workflow.version));
  const select = (next: string | null) => {
    if (next === (step ?? null)) return;
    void navigate({
      search: ({ step: _, ...rest }) => (next === null ? rest : { ...rest, step: next }),
      replace: true,
    });
  };
  return (
    <div className={classes["panes"]}>
      <section className={classes["pane"]} aria-label="Definition">
        <div className={classes["grow"]}>
          <CodeView
            text={text}
            language="yaml"
            label={`Definition of ${workflow.name}, version ${workflow.version}`}
            stretch={stretches.find(({ name }) => name === step) ?? null}
            onPlace={(place) => select(stepAt(stretches, place))}
          />
        </div>
      </section>
      <section className={classes["pane"]} aria-label="Graph">
        <div className={classes["grow"]}>
          {graph.error !== null && <ProblemPanel error={graph.error} again={() => void graph.refetch()} />}
          {graph.isPending && <Loading lines={3} />}
          {graph.data !== undefined && <GraphPane graph={graph.data} selected={step ?? null} onSelect={select} />}
        </div>
      </section>
    </div>
  );
}
