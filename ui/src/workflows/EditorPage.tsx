/** Edits a workflow, starting from its latest or an older version. */

import { Alert, Stack, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { AnchorLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { editWorkflowRoute } from "../app/router.tsx";
import { Editor } from "./editor/Editor.tsx";
import { versionQuery, workflowQuery } from "./queries.ts";
import { textOf } from "./definitionText.ts";
import classes from "./workflows.module.css";

export function EditorPage() {
  const { workflow } = editWorkflowRoute.useParams();
  const { version, step } = editWorkflowRoute.useSearch();
  const navigate = useNavigate({ from: "/workflows/$workflow/edit" });
  // Versions that others save do not change the text here; they are detected on saving.
  const latest = useQuery({ ...workflowQuery(workflow), refetchInterval: false, refetchOnWindowFocus: false });
  const older = useQuery({ ...versionQuery(workflow, version ?? 0), enabled: version !== undefined });
  const base = version === undefined ? latest : older;
  const error = latest.error ?? base.error;
  if (error !== null) {
    return (
      <Stack gap="sm">
        <Title order={1} size="h3" className={classes["name"]}>
          Edit {workflow}
        </Title>
        <ProblemPanel error={error} again={() => void base.refetch()} />
        <AnchorLink to="/workflows" search={{}} size="sm">
          All workflows
        </AnchorLink>
      </Stack>
    );
  }
  if (latest.data === undefined || base.data === undefined) return <Loading />;
  return (
    <Held
      key={`${workflow} ${base.data.version}`}
      workflow={workflow}
      text={textOf(base.data)}
      version={base.data.version}
      latest={latest.data.version}
      step={step ?? null}
      onStep={(next) =>
        void navigate({
          search: ({ step: _, ...rest }) => (next === null ? rest : { ...rest, step: next }),
          replace: true,
        })
      }
    />
  );
}

/** Keeps the version that was read when the page was opened. */
function Held(props: {
  workflow: string;
  text: string;
  version: number;
  latest: number;
  step: string | null;
  onStep: (step: string | null) => void;
}) {
  const [{ text, version, latest }] = useState(props);
  return (
    <Editor
      heading={`Edit ${props.workflow}`}
      workflow={props.workflow}
      text={text}
      version={version}
      latest={latest}
      step={props.step}
      onStep={props.onStep}
    >
      {version !== latest && (
        <Alert variant="light" color="orange" title={`You are editing version ${version}`} data-testid="older-version">
          The latest version is {latest}. Any change since version {version} is missing here.
        </Alert>
      )}
    </Editor>
  );
}
