/** The log of a run or a step: its events, the progress reports of agents, and the exchanges. */

import { Button, Group, Text } from "@mantine/core";
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { CircleX, Download, Info, TriangleAlert, type LucideIcon } from "lucide-react";

import { api, body } from "../../api/client.ts";
import type { components } from "../../api/schema.d.ts";
import { useRefetchOnChange } from "../../api/useRefetchOnChange.ts";
import { clockTime } from "../../app/clockTime.ts";
import { download } from "../../app/download.ts";
import { Loading } from "../../app/Loading.tsx";
import { absoluteTime, useTimeZone } from "../../app/Timestamp.tsx";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import classes from "./inspector.module.css";

type LogPage = components["schemas"]["LogPage"];
type Line = LogPage["items"][number];

const PAGE = 200;
const AGAIN_MS = 2_000;
const LEVELS: Readonly<Record<Line["level"], LucideIcon>> = { info: Info, warning: TriangleAlert, error: CircleX };

export function LogsTab({
  run,
  step,
  attempt,
  live,
}: {
  run: string;
  step: string | null;
  attempt: number | null;
  live: boolean;
}) {
  const wanted = { ...(step === null ? {} : { step }), ...(attempt === null ? {} : { attempt }) };
  const query = useInfiniteQuery({
    queryKey: ["run", run, "logs", step, attempt],
    queryFn: async ({ pageParam, signal }) => {
      const asked = { limit: PAGE, ...wanted, ...(pageParam === null ? {} : { cursor: pageParam }) };
      return (await body(
        api.GET("/api/v1/runs/{run}/logs", { params: { path: { run }, query: asked }, signal }),
      )) as LogPage;
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    staleTime: 0,
    refetchInterval: live ? AGAIN_MS : false,
  });
  // The last lines arrive with the end of the run.
  useRefetchOnChange(live, query);
  const whole = useMutation({
    mutationFn: () =>
      body(
        api.GET("/api/v1/runs/{run}/logs", {
          params: { path: { run }, query: { ...wanted, format: "lines" } },
          parseAs: "text",
        }),
      ),
    onSuccess: (lines) => download(lines, `${step === null ? run : `${run}-${step}`}.jsonl`),
  });
  const problem = query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  if (query.data === undefined) return problem || <Loading />;
  const lines = query.data.pages.flatMap((page) => page.items);
  return (
    <div data-testid="logs">
      <Group justify="space-between" mb="xs">
        <Text size="sm">
          {lines.length.toLocaleString()}
          {query.hasNextPage ? " or more" : ""} lines
        </Text>
        <Button
          size="compact-xs"
          variant="default"
          leftSection={<Download size={13} aria-hidden />}
          loading={whole.isPending}
          onClick={() => whole.mutate()}
          title="Download all lines as JSON objects"
          data-testid="download-logs"
        >
          Download JSON Lines
        </Button>
      </Group>
      {problem}
      {whole.error !== null && <ProblemPanel error={whole.error} again={() => whole.mutate()} />}
      {lines.length === 0 ? (
        <Text size="sm" c="dimmed">
          No log lines yet.
        </Text>
      ) : (
        <ol className={classes["lines"]} tabIndex={0} aria-label="Log">
          {lines.map((line, place) => (
            <LogLine key={place} line={line} steps={step === null} />
          ))}
        </ol>
      )}
      {query.hasNextPage && (
        <Button
          mt="xs"
          size="compact-sm"
          variant="default"
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          Load more lines
        </Button>
      )}
    </div>
  );
}

function LogLine({ line, steps }: { line: Line; steps: boolean }) {
  const [zone] = useTimeZone();
  const Icon = LEVELS[line.level];
  const at = Date.parse(line.at);
  return (
    <li className={classes["line"]} data-level={line.level} data-source={line.source} data-testid="log-line">
      <time dateTime={line.at} title={absoluteTime(at, zone)}>
        {clockTime(at, zone)}
      </time>
      <Icon size={13} aria-label={line.level} />
      <span className={classes["said"]}>
        {steps && line.step !== null && <span className={classes["type"]}>{line.step}</span>}
        {line.text}
      </span>
    </li>
  );
}
