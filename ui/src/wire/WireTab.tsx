/** The exchanges of a run, a step or an attempt. */

import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { GitCompare } from "lucide-react";
import { lazy, Suspense } from "react";

import type { components } from "../api/schema.d.ts";
import { Loading } from "../app/Loading.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { numberOf } from "./exchange.ts";
import { ExchangeList, NoExchanges } from "./ExchangeList.tsx";
import { HarButton } from "./HarButton.tsx";
import { Negotiation } from "./Negotiation.tsx";
import { type Asked, useExchanges } from "./useExchanges.ts";
import { useWireView } from "./useWireView.ts";

// Loaded on demand, because it contains the code editor.
const AttemptDiff = lazy(() => import("./AttemptDiff.tsx"));

/** `detail`: the selected step. */
export function WireTab({ detail = null, ...asked }: Asked & { detail?: components["schemas"]["Step"] | null }) {
  const { run, step, attempt, live } = asked;
  const view = useWireView();
  const wanted = [...(view.opened ?? [])].map(numberOf);
  const query = useExchanges(asked, Math.max(0, ...wanted));
  const { exchanges, hasNextPage } = query;
  const again = () => void (query.isFetchNextPageError ? query.fetchNextPage() : query.refetch());
  const problem = query.error !== null && <ProblemPanel error={query.error} again={again} />;
  if (query.data === undefined) return problem || <Loading />;
  const missing = hasNextPage
    ? []
    : wanted.filter((number) => number > 0 && exchanges.every(({ id }) => id !== number));
  return (
    <Stack gap="xs" data-testid="wire">
      <Group justify="space-between" gap="xs">
        <Text size="sm" data-testid="wire-count">
          {exchanges.length.toLocaleString()}
          {hasNextPage ? " or more" : ""} exchange{exchanges.length === 1 && !hasNextPage ? "" : "s"}
        </Text>
        <Group gap={6}>
          {detail !== null && detail.attempts > 1 && (
            <Button
              size="compact-xs"
              variant="default"
              leftSection={<GitCompare size={13} aria-hidden />}
              onClick={() => view.onCompare(firstPair(detail.attempts, attempt), "response")}
              data-testid="compare"
            >
              Compare attempts
            </Button>
          )}
          <HarButton run={run} step={step} attempt={attempt} />
        </Group>
      </Group>
      {detail !== null && detail.agent !== "" && <Negotiation agent={detail.agent} protocol={detail.protocol} />}
      {detail !== null && (
        <Modal
          opened={view.pair !== null}
          onClose={view.onCompared}
          title={`Compare attempts of ${detail.name}`}
          size="90%"
          closeButtonProps={{ "aria-label": "Close" }}
          transitionProps={{ duration: 0 }}
        >
          {view.pair !== null && (
            <Suspense fallback={<Loading />}>
              <AttemptDiff asked={asked} step={detail} pair={view.pair} part={view.part} onCompare={view.onCompare} />
            </Suspense>
          )}
        </Modal>
      )}
      {problem}
      {missing.length > 0 && (
        <Text size="sm" data-testid="no-exchange">
          {missing.length === 1 ? `Exchange ${missing[0]} is` : `Exchanges ${missing.join(", ")} are`} not in{" "}
          {attempt === null ? "this list" : `attempt ${attempt}`}.
        </Text>
      )}
      {exchanges.length === 0 && !hasNextPage ? (
        <NoExchanges running={live} />
      ) : (
        <ExchangeList
          key={`${step} ${attempt}`}
          exchanges={exchanges}
          whose={step === null ? "step" : attempt === null && (detail?.attempts ?? 0) > 1 ? "attempt" : null}
          opened={view.opened}
          onOpened={view.onOpened}
        />
      )}
      {hasNextPage && (
        <Button
          size="compact-sm"
          variant="default"
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          Load more exchanges
        </Button>
      )}
    </Stack>
  );
}

/** The selected attempt, or the one before the last, compared with the last. */
function firstPair(last: number, chosen: number | null) {
  return { before: chosen !== null && chosen < last ? chosen : last - 1, after: last };
}
