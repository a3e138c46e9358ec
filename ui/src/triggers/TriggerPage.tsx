/** A trigger: what starts it, when it fires next, its history, and its actions. */

import { Button, Code, CopyButton, Group, Modal, Stack, Table, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Copy, Pause, Pencil, Play, Trash2, Zap } from "lucide-react";

import { escapeBidi } from "../app/bidi.ts";
import { ColumnTable } from "../app/ColumnTable.tsx";
import { AnchorLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { usePermission } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { triggerRoute } from "../app/router.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { toast } from "../app/toasts.ts";
import { usePageTitle } from "../app/title.ts";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import { OutcomeBadge } from "./OutcomeBadge.tsx";
import { Planned, PlannedList } from "./Planned.tsx";
import { type Firing, firingsQuery, type Trigger, triggerQuery, useDelete, useFire, useSwitch } from "./queries.ts";
import { flowTexts, sourceText } from "./source.ts";
import classes from "./triggers.module.css";

export function TriggerPage() {
  const { trigger: name } = triggerRoute.useParams();
  usePageTitle(name);
  const query = useQuery(triggerQuery(name));
  return (
    <Stack gap="md">
      <AnchorLink to="/triggers" size="sm">
        All triggers
      </AnchorLink>
      <Group justify="space-between">
        <Title order={1} size="h3" className={classes["name"]}>
          {escapeBidi(name)}
        </Title>
        {query.data !== undefined && <Actions trigger={query.data} />}
      </Group>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.data !== undefined && (
        <>
          <div className={classes["panes"]}>
            <Facts trigger={query.data} />
            {query.data.next_firings.length > 0 && (
              <Stack gap={4} component="section" aria-label="Next firings">
                <Title order={2} size="h5">
                  Next firings
                </Title>
                <PlannedList times={query.data.next_firings} />
              </Stack>
            )}
          </div>
          <History trigger={name} />
        </>
      )}
    </Stack>
  );
}

function Facts({ trigger }: { trigger: Trigger }) {
  const url = trigger.webhook?.url;
  const limits = flowTexts(trigger);
  return (
    <dl className={classes["facts"]} data-testid="trigger-facts">
      <dt>State</dt>
      <dd data-testid="trigger-state">{trigger.enabled ? "Enabled" : "Paused"}</dd>
      <dt>Starts</dt>
      <dd>
        <AnchorLink to="/workflows/$workflow" params={{ workflow: trigger.workflow }} search={{}} size="sm">
          {trigger.workflow}
        </AnchorLink>
        {trigger.version === null ? "" : ` version ${trigger.version}`}
      </dd>
      <dt>Fires</dt>
      <dd>{escapeBidi(sourceText(trigger))}</dd>
      {limits.length > 0 && (
        <>
          <dt>Limits</dt>
          <dd data-testid="trigger-limits">{escapeBidi(limits.join(". "))}</dd>
        </>
      )}
      {url != null && (
        <>
          <dt>URL</dt>
          <dd>
            <Group gap="xs">
              <Code className={classes["name"]}>{url}</Code>
              <CopyButton value={url}>
                {({ copied, copy }) => (
                  <Button
                    size="compact-xs"
                    variant="default"
                    leftSection={<Copy size={14} aria-hidden />}
                    onClick={copy}
                  >
                    {copied ? "Copied" : "Copy"}
                  </Button>
                )}
              </CopyButton>
            </Group>
          </dd>
        </>
      )}
      {trigger.description !== undefined && (
        <>
          <dt>Description</dt>
          <dd>{trigger.description}</dd>
        </>
      )}
    </dl>
  );
}

function Actions({ trigger }: { trigger: Trigger }) {
  const operator = usePermission("operator");
  const admin = usePermission("admin");
  const navigate = useNavigate();
  const [deleting, dialog] = useDisclosure();
  const switching = useSwitch(trigger.name);
  const firing = useFire(trigger.name);
  const failed = switching.error ?? firing.error;
  const mayOperate = operator.allowed ? null : operator.reason;
  const mayChange = admin.allowed ? null : admin.reason;
  const fire = () =>
    firing.mutate(undefined, { onSuccess: (run) => toast("done", `Started run ${run.id} of ${trigger.workflow}.`) });
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <ActionButton icon={Zap} refused={mayOperate} onPress={fire} loading={firing.isPending} testId="fire">
          Fire now
        </ActionButton>
        <ActionButton
          icon={trigger.enabled ? Pause : Play}
          refused={mayOperate}
          onPress={() => switching.mutate(trigger.enabled ? "pause" : "resume")}
          loading={switching.isPending}
          testId="switch"
        >
          {trigger.enabled ? "Pause" : "Resume"}
        </ActionButton>
        <ActionButton
          icon={Pencil}
          refused={mayChange}
          onPress={() => void navigate({ to: "/triggers/$trigger/edit", params: { trigger: trigger.name } })}
          testId="edit"
        >
          Edit
        </ActionButton>
        <ActionButton icon={Trash2} refused={mayChange} onPress={dialog.open} testId="delete">
          Delete
        </ActionButton>
      </Group>
      {failed !== null && <ProblemPanel error={failed} />}
      {deleting && <DeleteDialog trigger={trigger.name} onClose={dialog.close} />}
    </Stack>
  );
}

function DeleteDialog({ trigger, onClose }: { trigger: string; onClose: () => void }) {
  const deleting = useDelete(trigger);
  const navigate = useNavigate();
  const go = () =>
    deleting.mutate(undefined, {
      onSuccess: () => {
        toast("done", `Trigger ${trigger} deleted.`);
        void navigate({ to: "/triggers" });
      },
    });
  return (
    <Modal opened onClose={onClose} title={`Delete the trigger ${trigger}?`} transitionProps={{ duration: 0 }}>
      <Stack gap="sm" data-testid="delete-dialog">
        <Text size="sm">Its history is deleted, too. Its runs continue. You cannot undo this.</Text>
        {deleting.error !== null && <ProblemPanel error={deleting.error} />}
        <Group justify="flex-end" gap="sm">
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          <Button color="red.9" loading={deleting.isPending} onClick={go} data-testid="confirm-delete">
            Delete
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function History({ trigger }: { trigger: string }) {
  const query = useInfiniteQuery(firingsQuery(trigger));
  const firings = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap="xs" component="section" aria-label="History">
      <Title order={2} size="h5">
        History
      </Title>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isSuccess && firings.length === 0 && (
        <Text size="sm" c="dimmed" data-testid="no-firings">
          No firings yet.
        </Text>
      )}
      {firings.length > 0 && (
        <ColumnTable columns={["Fired", "Scheduled", "Outcome", "Run or reason"]} testid="firings">
          {firings.map((firing, place) => (
            // Several can have the same times.
            <FiringRow key={`${firing.at} ${firing.run_id ?? place}`} firing={firing} />
          ))}
        </ColumnTable>
      )}
      {query.hasNextPage && (
        <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Load older firings
        </Button>
      )}
    </Stack>
  );
}

function FiringRow({ firing }: { firing: Firing }) {
  return (
    <Table.Tr data-testid="firing">
      <Table.Td className={classes["when"]}>
        <Timestamp at={firing.at} />
      </Table.Td>
      <Table.Td>{firing.scheduled_at === null ? "–" : <Planned at={firing.scheduled_at} />}</Table.Td>
      <Table.Td>
        <OutcomeBadge outcome={firing.outcome} />
      </Table.Td>
      <Table.Td className={classes["name"]}>
        {firing.run_id === null ? (
          escapeBidi(firing.reason ?? "")
        ) : (
          <AnchorLink to="/runs/$run" params={{ run: firing.run_id }} search={{}} ff="monospace" size="sm">
            {firing.run_id}
          </AnchorLink>
        )}
      </Table.Td>
    </Table.Tr>
  );
}
