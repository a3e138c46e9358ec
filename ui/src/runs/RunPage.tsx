/** One run: its graph, its time and everything about one step, with one selection that is in the address. */

import { Box, Stack } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";

import type { components } from "../api/schema.d.ts";
import { Loading } from "../app/Loading.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { runRoute } from "../app/router.tsx";
import { lookOf } from "../app/StatusBadge.tsx";
import { usePageTitle } from "../app/title.ts";
import { Gantt } from "./gantt/Gantt.tsx";
import { Inspector } from "./inspector/Inspector.tsx";
import { isFinal, ownerOf, type RunModel } from "./model.ts";
import { RunGraph } from "./RunGraph.tsx";
import { RunMissing } from "./RunMissing.tsx";
import { RunHeader } from "./RunHeader.tsx";
import { RunNotice } from "./RunNotice.tsx";
import classes from "./RunPage.module.css";
import { Side, Stacked } from "./Panes.tsx";
import { readGraph, runQuery } from "./useChildPictures.ts";
import { type LiveModel, useCalmModel, useFollowed } from "./useRunModel.ts";

type Run = components["schemas"]["Run"];

export function RunPage() {
  const { run } = runRoute.useParams();
  // Another run is another page: nothing of the one before is to be seen in it.
  return <OneRun key={run} run={run} />;
}

function OneRun({ run }: { run: string }) {
  const { live, connection, problem } = useFollowed(run);
  const model = useCalmModel(live);
  const query = useQuery(runQuery(run));
  const { refetch } = query;
  const known = query.data;
  // What the history does not tell (ids, the workflow) stays; the rest is asked for again when the run has moved. Of a
  // run that is over all is known, while its history is still being read.
  useEffect(() => {
    if (known !== undefined && !isFinal(known.status) && model.seq > 0 && known.status !== model.status) void refetch();
  }, [model.status, known, refetch]);
  usePageTitle(known === undefined ? "Run" : `${lookOf(model.seq > 0 ? model.status : known.status).word} · ${known.workflow.name}`);
  if (query.error !== null && known === undefined) return <RunMissing error={query.error} again={() => void refetch()} />;
  if (known === undefined) return <Loading lines={8} />;
  return (
    <Stack gap="xs" className={classes["page"]!} data-testid="run-page">
      <RunHeader run={known} model={model} connection={connection} problem={problem} />
      <Body run={known} live={live} model={model} />
    </Stack>
  );
}

function Body({ run, live, model }: { run: Run; live: LiveModel; model: RunModel }) {
  const { step = null, attempt = null, tab = null } = runRoute.useSearch();
  const navigate = runRoute.useNavigate();
  const wide = useMediaQuery("(min-width: 75em)", undefined, { getInitialValueInEffect: false });
  const { name, version } = run.workflow;
  const graph = useQuery({
    queryKey: ["graph", name, version],
    queryFn: () => readGraph(name, version),
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
        }),
        resetScroll: false,
      });
    },
    [navigate, step, attempt],
  );
  const [open, toggle] = useOpen(step, select);
  const openRun = useCallback(
    (child: string, inner: string) => void navigate({ to: "/runs/$run", params: { run: child }, search: { step: inner } }),
    [navigate],
  );
  const pick = useCallback((chosen: string | null) => select(chosen), [select]);
  const picture =
    graph.data === undefined ? (
      graph.error === null ? <Loading lines={4} /> : <ProblemPanel error={graph.error} again={() => void graph.refetch()} />
    ) : (
      <RunGraph graph={graph.data} live={live} selected={step} onSelect={pick} onOpenRun={openRun} open={open} onOpen={toggle} />
    );
  const chart = graph.data !== undefined && (
    <Gantt run={run.id} graph={graph.data} live={live} selected={step} attempt={attempt} onSelect={select} open={open} onOpen={toggle} />
  );
  const showTab = useCallback(
    (chosen: string) => void navigate({ search: (now) => ({ ...now, tab: chosen }), replace: true, resetScroll: false }),
    [navigate],
  );
  const inspector = useMemo(
    () => <Inspector run={run.id} model={model} step={step} attempt={attempt} tab={tab} onTab={showTab} onSelect={select} />,
    [run.id, model, step, attempt, tab, showTab, select],
  );
  return (
    <>
      <RunNotice model={model} run={run} onSelect={select} />
      <Box className={classes["body"]!}>
        {wide ? <Side top={picture} bottom={chart} aside={inspector} /> : <Stacked parts={[picture, chart, inspector]} />}
      </Box>
    </>
  );
}

/** The steps whose inside is shown; one whose item is chosen is among them: closing it chooses the step instead. */
function useOpen(
  selected: string | null,
  select: (step: string) => void,
): readonly [ReadonlySet<string>, (step: string) => void] {
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const owner = selected !== null && ownerOf(selected) !== selected ? ownerOf(selected) : null;
  const open = useMemo(() => (owner === null || toggled.has(owner) ? toggled : new Set([...toggled, owner])), [toggled, owner]);
  const toggle = useCallback(
    (step: string) => {
      setToggled((before) => {
        const after = new Set(before);
        if (!after.delete(step) && step !== owner) after.add(step);
        return after;
      });
      if (step === owner) select(step);
    },
    [owner, select],
  );
  return [open, toggle];
}
