/** The migration of one agent: its stage, blockers, source and target, comparisons, and history. */

import { Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { ArrowRight } from "lucide-react";

import { AnchorLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { agentMigrationRoute } from "../app/router.tsx";
import { BlockerList } from "./BlockerList.tsx";
import { AffectedExpressions } from "./AffectedExpressions.tsx";
import { Comparisons } from "./Comparisons.tsx";
import { History } from "./History.tsx";
import classes from "./migration.module.css";
import { MigrationActions } from "./MigrationActions.tsx";
import { statusQuery, type Stage, type Status } from "./queries.ts";
import { SourceAndTarget } from "./SourceAndTarget.tsx";
import { LOOKS, nextOf, stageOf } from "./stages.ts";
import { StageBadge } from "./StageBadge.tsx";

export function AgentMigrationPage() {
  const { agent } = agentMigrationRoute.useParams();
  const search = agentMigrationRoute.useSearch();
  const navigate = useNavigate({ from: "/migration/$agent" });
  const query = useQuery(statusQuery(agent));
  const status = query.data;
  const act = (wanted: typeof search.act) =>
    void navigate({
      search: ({ act: _, ...rest }) => (wanted === undefined ? rest : { ...rest, act: wanted }),
      replace: true,
    });
  return (
    <Stack gap="md">
      <div>
        <AnchorLink to="/migration" search={{}} size="xs">
          All agents
        </AnchorLink>
        <Group gap="md" align="baseline">
          <Title order={1} size="h3">
            {agent}
          </Title>
          <AnchorLink to="/agents/$agent" params={{ agent }} size="sm" data-testid="to-agent">
            View agent
          </AnchorLink>
        </Group>
      </div>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading lines={8} />}
      {status !== undefined && (
        <>
          <MigrationStatus status={status} />
          <MigrationActions status={status} act={search.act} onAct={act} />
          <BlockerList
            status={status}
            onAct={act}
            onSeeDifferences={() => {
              void navigate({ search: { verdict: "differ" }, replace: true, resetScroll: false });
              document.getElementById("comparisons")?.scrollIntoView();
            }}
          />
          <SourceAndTarget status={status} />
          <AffectedExpressions reads={status.expressions} />
          <Comparisons
            agent={agent}
            counts={status.comparisons}
            verdict={search.verdict}
            selected={search.comparison}
            onSelect={({ verdict, comparison }) =>
              void navigate({
                search: {
                  ...(verdict === undefined ? {} : { verdict }),
                  ...(comparison === undefined ? {} : { comparison }),
                },
                replace: true,
                resetScroll: false,
              })
            }
          />
          <History agent={agent} />
        </>
      )}
    </Stack>
  );
}

const TRACK = ["planned", "shadow", "canary", "cut_over", "finished"] as const satisfies readonly Stage[];

function MigrationStatus({ status }: { status: Status }) {
  const stage = stageOf(status);
  const next = nextOf(status);
  if (stage === null) {
    return (
      <Text size="sm" data-testid="not-moving">
        This agent uses {status.in_use} and has no migration. To migrate it anyway, use one of the actions and enter a
        target.
      </Text>
    );
  }
  return (
    <Stack gap={6} data-testid="standing">
      <ol className={classes["track"]} aria-label="Stages">
        {(stage === "rolled_back" ? (["rolled_back", ...TRACK.slice(1)] as const) : TRACK).map((each, place) => (
          <li key={each} {...(each === stage ? { "aria-current": "step" } : {})}>
            {place > 0 && <ArrowRight size={13} aria-hidden />}
            {each === stage ? <StageBadge stage={each} /> : LOOKS[each].name}
            {each === stage && (stage === "shadow" || stage === "canary") && ` ${status.migration?.percent}%`}
          </li>
        ))}
      </ol>
      <Text size="sm">{LOOKS[stage].told}</Text>
      {status.event !== null && (
        <Text size="sm" c="dimmed" data-testid="last-change">
          Since <Timestamp at={status.event.at} />, by {status.event.who}: {status.event.why}
        </Text>
      )}
      {status.migration?.ready != null && (
        <Text size="sm" data-testid="attested">
          Attested by {status.migration.ready.who} (<Timestamp at={status.migration.ready.at} />
          ): {status.migration.ready.note}
        </Text>
      )}
      {next !== null && (
        <Text size="sm" fw={600} data-testid="next">
          Next step: {next.text}.
        </Text>
      )}
    </Stack>
  );
}
