/** Everything that went over the wire for a run, a step or one attempt of it. */

import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { GitCompare } from "lucide-react";
import { lazy, Suspense, useMemo } from "react";

import type { components } from "../api/schema.d.ts";
import { Loading } from "../app/Loading.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { ExchangeList, NoExchanges } from "./ExchangeList.tsx";
import { HarButton } from "./HarButton.tsx";
import { Negotiation } from "./Negotiation.tsx";
import { useExchanges } from "./useExchanges.ts";

// With the code editor, which nobody else here needs.
const AttemptDiff = lazy(() => import("./AttemptDiff.tsx"));

type Step = components["schemas"]["Step"];

export function WireTab({
  run,
  step,
  attempt,
  live,
  moved,
  form,
  onTab,
  detail = null,
}: {
  run: string;
  step: string | null;
  attempt: number | null;
  /** More may come. */
  live: boolean;
  moved: string;
  /** `compare`: two attempts are laid side by side. */
  form: string | null;
  onTab: (tab: string) => void;
  /** The step itself. */
  detail?: Step | null;
}) {
  const query = useExchanges(run, step, live, moved);
  const all = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  const shown = useMemo(() => (attempt === null ? all : all.filter((each) => each.attempt === attempt)), [all, attempt]);
  const attempts = useMemo(() => [...new Set(all.map((each) => each.attempt))].sort((one, other) => one - other), [all]);
  const canCompare = step !== null && attempts.length > 1;
  const again = () => void (query.isFetchNextPageError ? query.fetchNextPage() : query.refetch());
  const problem = query.error !== null && <ProblemPanel error={query.error} again={again} />;
  if (query.data === undefined) return problem || <Loading />;
  return (
    <Stack gap="xs" data-testid="wire">
      <Group justify="space-between" gap="xs">
        <Text size="sm" data-testid="wire-count">
          {shown.length.toLocaleString()}{query.hasNextPage ? " or more" : ""} exchange{shown.length === 1 && !query.hasNextPage ? "" : "s"}
        </Text>
        <Group gap={6}>
          {canCompare && (
            <Button
              size="compact-xs"
              variant="default"
              leftSection={<GitCompare size={13} aria-hidden />}
              onClick={() => onTab("wire.compare")}
              data-testid="compare"
            >
              Compare attempts
            </Button>
          )}
          <HarButton run={run} step={step} />
        </Group>
      </Group>
      {detail !== null && detail.agent !== "" && <Negotiation agent={detail.agent} protocol={detail.protocol} />}
      <Modal
        opened={canCompare && form === "compare"}
        onClose={() => onTab("wire")}
        title={`Two attempts of ${step}`}
        size="90%"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        <Suspense fallback={<Loading />}>
          <AttemptDiff exchanges={all} attempts={attempts} chosen={attempt} step={detail} />
        </Suspense>
      </Modal>
      {problem}
      {shown.length === 0 && !query.hasNextPage ? (
        <NoExchanges running={live} />
      ) : (
        <ExchangeList key={`${step} ${attempt}`} exchanges={shown} steps={step === null} />
      )}
      {query.hasNextPage && (
        <Button size="compact-sm" variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          More exchanges
        </Button>
      )}
    </Stack>
  );
}
