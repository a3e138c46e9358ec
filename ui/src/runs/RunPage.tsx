/** One run: its graph, its timeline and the inspector, with a shared selection in the URL. */

import { Box, Stack } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";

import type { components } from "../api/schema.d.ts";
import { Loading } from "../app/Loading.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { runRoute } from "../app/router.tsx";
import { appearanceOf } from "../app/StatusBadge.tsx";
import { usePageTitle } from "../app/title.ts";
import { Gantt } from "./gantt/Gantt.tsx";
import { Inspector } from "./inspector/Inspector.tsx";
import { isFinal, ownerOf, type RunModel, type StepStatus } from "./model.ts";
import { RunGraph } from "./RunGraph.tsx";
import { RunLoadError } from "./RunLoadError.tsx";
import { RunHeader } from "./RunHeader.tsx";
import { RunNotice } from "./RunNotice.tsx";
import classes from "./RunPage.module.css";
import { Side, Stacked } from "./ResizablePanes.tsx";
import { blockGraph, readGraph, runQuery, useChildGraphs } from "./useChildGraphs.ts";
import { useExpandedSteps } from "./useExpandedSteps.ts";
import { type LiveModel, useThrottledModel, useFollowed } from "./useRunModel.ts";

type Run = components["schemas"]["Run"];

export function RunPage() {
  const { run } = runRoute.useParams();
  // The key resets all state for another run.
  return <OneRun key={run} run={run} />;
}

function OneRun({ run }: { run: string }) {
  const { data: known, error, isFetching, refetch } = useQuery(runQuery(run));
  if (known === undefined) return <UnknownRun error={error} again={() => void refetch()} />;
  return <KnownRun run={known} isLatest={!isFetching} again={refetch} />;
}

/** Shown while the run is loading or cannot be loaded. */
function UnknownRun({ error, again }: { error: Error | null; again: () => void }) {
  usePageTitle("Run");
  return error === null ? <Loading lines={8} /> : <RunLoadError error={error} again={again} />;
}

function KnownRun({ run, isLatest, again }: { run: Run; isLatest: boolean; again: () => unknown }) {
  const { live, connection, problem } = useFollowed(run, isLatest);
  const model = useThrottledModel(live);
  // The record has what the history lacks (ids, the workflow); it is refetched when the run changes.
  useEffect(() => {
    if (!isFinal(run.status) && run.status !== model.status) void again();
  }, [model.status, run, again]);
  usePageTitle(`${appearanceOf(model.status).word} · ${run.workflow.name}`);
  return (
    <Stack gap="xs" className={classes["page"]} data-testid="run-page">
      <RunHeader run={run} model={model} connection={connection} problem={problem} />
      <Body run={run} live={live} model={model} />
    </Stack>
  );
}

function Body({ run, live, model }: { run: Run; live: LiveModel; model: RunModel }) {
  const { step = null, attempt = null, tab = null } = runRoute.useSearch();
  const navigate = runRoute.useNavigate();
  const wide = useMediaQuery("(min-width: 64em)", undefined, { getInitialValueInEffect: false });
  // Determined when the page is opened, so that the graph does not move during the run.
  const [begin] = useState(() => whatMatters(run));
  const { name, version } = run.workflow;
  const graph = useQuery({
    queryKey: ["graph", name, version, run.block ?? ""],
    queryFn: async () => blockGraph(await readGraph(name, version), run.block),
    staleTime: Infinity,
  });
  const select = useCallback(
    (chosen: string | null, which: number | null = null) => {
      if (chosen === step && which === attempt) return;
      void navigate({
        search: (now) => ({
          ...(now.tab === undefined ? {} : { tab: now.tab }),
          ...(chosen === null ? {} : { step: chosen }),
          ...(which === null ? {} : { attempt: which }),
          ...(now.items !== undefined && ownerOf(chosen ?? "") === ownerOf(now.step ?? "") ? { items: now.items } : {}),
          ...(now.open === undefined ? {} : { open: now.open }),
        }),
        resetScroll: false,
      });
    },
    [navigate, step, attempt],
  );
  const { open, opened, toggle } = useExpandedSteps(step);
  // Shared by the graph and the timeline.
  const pictures = useChildGraphs(model, open);
  const openRun = useCallback(
    (child: string, inner: string, which: number | null = null) =>
      void navigate({
        to: "/runs/$run",
        params: { run: child },
        search: { step: inner, ...(which === null ? {} : { attempt: which }) },
      }),
    [navigate],
  );
  const pick = useCallback((chosen: string | null) => select(chosen), [select]);
  const picture =
    graph.data === undefined ? (
      graph.error === null ? (
        <Loading lines={4} />
      ) : (
        <ProblemPanel error={graph.error} again={() => void graph.refetch()} />
      )
    ) : (
      <RunGraph
        graph={graph.data}
        live={live}
        pictures={pictures}
        selected={step}
        onSelect={pick}
        onOpenRun={openRun}
        open={open}
        onOpen={toggle}
        opened={opened}
        begin={begin}
      />
    );
  const chart = graph.data !== undefined && (
    <Gantt
      run={run.id}
      graph={graph.data}
      live={live}
      pictures={pictures}
      selected={step}
      attempt={attempt}
      onSelect={select}
      onOpenRun={openRun}
      open={open}
      onOpen={toggle}
    />
  );
  const showTab = useCallback(
    (chosen: string) =>
      void navigate({ search: (now) => ({ ...now, tab: chosen }), replace: true, resetScroll: false }),
    [navigate],
  );
  const inspector = useMemo(
    () => (
      <Inspector run={run.id} model={model} step={step} attempt={attempt} tab={tab} onTab={showTab} onSelect={select} />
    ),
    [run.id, model, step, attempt, tab, showTab, select],
  );
  return (
    <>
      <RunNotice model={model} onSelect={select} />
      <Box className={classes["body"]}>
        {wide ? (
          <Side top={picture} bottom={chart} aside={inspector} />
        ) : (
          <Stacked parts={[picture, chart, inspector]} chosen={step === null ? null : `${step} ${attempt}`} />
        )}
      </Box>
    </>
  );
}

/** The step that failed the run, otherwise a waiting or running step, otherwise none. */
function whatMatters({ status, error, steps }: Run): string | null {
  if (status === "FAILED" && error?.step != null) return ownerOf(error.step);
  const firstThatIs = (...statuses: readonly StepStatus[]) =>
    steps.find((step) => statuses.includes(step.status))?.name ?? null;
  return (
    (status === "FAILED" ? firstThatIs("FAILED") : null) ??
    firstThatIs("OUTCOME_UNKNOWN", "WAITING") ??
    firstThatIs("RUNNING")
  );
}
