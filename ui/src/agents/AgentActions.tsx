/** The actions of an agent: check its health, re-detect its protocol, reset its circuit breaker, edit it, remove it. */

import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { FilePen, HeartPulse, RefreshCw, ShieldCheck, Trash2 } from "lucide-react";

import { api, body } from "../api/client.ts";
import { type Permission, usePermission } from "../app/permissions.ts";
import { formatDuration } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { toast } from "../app/toasts.ts";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import { rememberHealthCheck } from "./healthChecks.ts";
import { Callout } from "./Callout.tsx";
import type { Agent, Health } from "./queries.ts";

const HEALTH = {
  healthy: { word: "Healthy", weight: "good" },
  unhealthy: { word: "Unhealthy", weight: "bad" },
  unknown: { word: "Unknown", weight: "neutral" },
} as const;

export function AgentActions({ agent }: { agent: Agent }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const operator = usePermission("operator");
  const admin = usePermission("admin");
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
      toast("done", `Detected protocol of ${agent.name}: ${found.dialect?.protocol ?? found.protocol}`);
    },
  });
  const reset = useMutation({
    mutationFn: () => body(api.POST("/api/v1/agents/{agent}/reset", path)),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["agents"] });
      toast("done", `Limits of ${agent.name} reset. Waiting tasks are sent now.`);
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
          Check health
        </ActionButton>
        <ActionButton
          icon={RefreshCw}
          refused={refusal(operator)}
          loading={refresh.isPending}
          onPress={() => refresh.mutate()}
          testId="refresh-card"
        >
          Re-detect protocol
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
            {agent.breaker === null ? "Reset rate limit" : "Reset circuit breaker"}
          </ActionButton>
        )}
        <ActionButton
          icon={FilePen}
          refused={refusal(admin)}
          onPress={() => void navigate({ to: "/agents/$agent/edit", params: { agent: agent.name } })}
          testId="edit-agent"
        >
          Edit
        </ActionButton>
        <ActionButton icon={Trash2} refused={refusal(admin)} onPress={beginRemoving} testId="remove-agent">
          Delete
        </ActionButton>
      </Group>
      {failed !== null && <ProblemPanel error={failed} />}
      <Modal
        opened={asked}
        onClose={hideHealth}
        title={`Health of ${agent.name}`}
        closeButtonProps={{ "aria-label": "Close" }}
        centered
      >
        <HealthAnswer health={health.data} error={health.error} />
      </Modal>
      <Removal agent={agent} opened={removing} close={endRemoving} />
    </>
  );
}

function refusal(may: Permission): string | null {
  return may.allowed ? null : may.reason;
}

function HealthAnswer({ health, error }: { health: Health | undefined; error: unknown }) {
  if (error !== null) return <ProblemPanel error={error} />;
  if (health === undefined) return <Text size="sm">Checking…</Text>;
  const { word, weight } = HEALTH[health.status];
  return (
    <Callout weight={weight} title={word} testId="health" value={health.status}>
      <Text size="sm">{health.detail}</Text>
      <Text size="xs" mt={4}>
        {health.protocol === null ? "" : `${health.protocol}, `}
        {formatDuration(health.duration_ms)}. A health check sends no work to the agent.
      </Text>
    </Callout>
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
      toast("done", `Deleted ${agent.name}.`);
    },
  });
  return (
    <Modal
      opened={opened}
      onClose={close}
      title={`Delete ${agent.name}?`}
      closeButtonProps={{ "aria-label": "Close" }}
      centered
    >
      <Stack gap="sm">
        <Text size="sm">
          Steps that call this agent will fail, including those of active runs. Its credentials and checks are deleted.
          Its past runs are kept.
        </Text>
        {remove.error !== null && <ProblemPanel error={remove.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button color="red.8" loading={remove.isPending} onClick={() => remove.mutate()} data-testid="confirm-remove">
            Delete
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
