/** What can be done with an agent: ask whether it is there, decide again what it speaks, close its breaker, change it. */

import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { FilePen, HeartPulse, RefreshCw, ShieldCheck, Trash2 } from "lucide-react";

import { api, body } from "../api/client.ts";
import { type May, useMay } from "../app/access.ts";
import { lasting } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { toast } from "../app/toasts.ts";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import { rememberHealthCheck } from "./healthChecks.ts";
import { Note } from "./Note.tsx";
import type { Agent, Health } from "./queries.ts";

const HEALTH = {
  healthy: { word: "It answers", weight: "good" },
  unhealthy: { word: "It does not answer as it should", weight: "bad" },
  unknown: { word: "Nobody can tell", weight: "neutral" },
} as const;

export function AgentActions({ agent }: { agent: Agent }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const operator = useMay("operator");
  const admin = useMay("admin");
  const path = { params: { path: { agent: agent.name } } };
  const [asked, { open: showHealth, close: hideHealth }] = useDisclosure();
  const [removing, { open: beginRemoving, close: endRemoving }] = useDisclosure();
  const health = useMutation({
    mutationFn: () => body(api.GET("/api/v1/agents/{agent}/health", path)),
    onSuccess: (found) => rememberHealthCheck(queries, agent.name, found),
  });
  const refresh = useMutation({
    mutationFn: () => body(api.POST("/api/v1/agents/{agent}/refresh", path)),
    onSuccess: (found) => {
      void queries.invalidateQueries({ queryKey: ["agents"] });
      toast("done", `${agent.name} speaks ${found.dialect?.protocol ?? found.protocol}.`);
    },
  });
  const reset = useMutation({
    mutationFn: () => body(api.POST("/api/v1/agents/{agent}/reset", path)),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["agents"] });
      toast("done", `The breaker of ${agent.name} is closed, and its tasks may go at once.`);
    },
  });
  const failed = refresh.error ?? reset.error;
  const hasLimits = agent.breaker !== null || agent.rate !== null;
  const isOpen = agent.limits?.breaker != null && agent.limits.breaker.state !== "closed";
  return (
    <>
      <Group gap={6} role="group" aria-label="Actions">
        <ActionButton
          icon={HeartPulse}
          refused={null}
          loading={health.isPending}
          onPress={() => {
            showHealth();
            health.mutate();
          }}
          testId="ask-health"
        >
          Is it there?
        </ActionButton>
        <ActionButton
          icon={RefreshCw}
          refused={refusal(operator)}
          loading={refresh.isPending}
          onPress={() => refresh.mutate()}
          testId="refresh-card"
        >
          Refresh card
        </ActionButton>
        {hasLimits && (
          <ActionButton
            icon={ShieldCheck}
            refused={refusal(operator)}
            loading={reset.isPending}
            filled={isOpen}
            onPress={() => reset.mutate()}
            testId="reset-breaker"
          >
            {agent.breaker === null ? "Reset rate" : "Reset breaker"}
          </ActionButton>
        )}
        <ActionButton
          icon={FilePen}
          refused={refusal(admin)}
          onPress={() => void navigate({ to: "/agents/$agent/edit", params: { agent: agent.name } })}
          testId="edit-agent"
        >
          Change
        </ActionButton>
        <ActionButton icon={Trash2} refused={refusal(admin)} onPress={beginRemoving} testId="remove-agent">
          Remove
        </ActionButton>
      </Group>
      {failed !== null && <ProblemPanel error={failed} />}
      <Modal
        opened={asked}
        onClose={hideHealth}
        title={`Is ${agent.name} there?`}
        closeButtonProps={{ "aria-label": "Close" }}
        centered
      >
        <HealthAnswer health={health.data} error={health.error} />
      </Modal>
      <Removal agent={agent} opened={removing} close={endRemoving} />
    </>
  );
}

function refusal(may: May): string | null {
  return may.allowed ? null : may.reason;
}

function HealthAnswer({ health, error }: { health: Health | undefined; error: unknown }) {
  if (error !== null) return <ProblemPanel error={error} />;
  if (health === undefined) return <Text size="sm">It is being asked…</Text>;
  const { word, weight } = HEALTH[health.status];
  return (
    <Note weight={weight} title={word} testId="health" value={health.status}>
      <Text size="sm">{health.detail}</Text>
      <Text size="xs" mt={4}>
        {health.protocol === null ? "" : `${health.protocol}, `}after {lasting(health.duration_ms)}. It was asked
        without being given work.
      </Text>
    </Note>
  );
}

function Removal({ agent, opened, close }: { agent: Agent; opened: boolean; close: () => void }) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => api.DELETE("/api/v1/agents/{agent}", { params: { path: { agent: agent.name } } }),
    onSuccess: async () => {
      await navigate({ to: "/agents", search: {} });
      queries.removeQueries({ queryKey: ["agents", "one", agent.name] });
      void queries.invalidateQueries({ queryKey: ["agents", "list"] });
      toast("done", `${agent.name} is removed.`);
    },
  });
  return (
    <Modal
      opened={opened}
      onClose={close}
      title={`Remove ${agent.name}?`}
      closeButtonProps={{ "aria-label": "Close" }}
      centered
    >
      <Stack gap="sm">
        <Text size="sm">
          Steps that call it will fail from now on, also those of runs that are under way. Its secret and its checks are
          deleted; the runs that it took part in stay.
        </Text>
        {remove.error !== null && <ProblemPanel error={remove.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={close}>
            Keep it
          </Button>
          <Button color="red.8" loading={remove.isPending} onClick={() => remove.mutate()} data-testid="confirm-remove">
            Remove
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
