/** A subscription: what it reports, whether that works, its deliveries, and its actions. */

import { Button, Group, Modal, Stack, Table, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Pause, Pencil, Play, RotateCcw, Send, Trash2 } from "lucide-react";

import { escapeBidi } from "../app/bidi.ts";
import { ColumnTable } from "../app/ColumnTable.tsx";
import { AnchorLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { usePermission } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { subscriptionRoute } from "../app/router.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { usePageTitle } from "../app/title.ts";
import { toast } from "../app/toasts.ts";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import classes from "../triggers/triggers.module.css";
import { DeliveryBadge, SubscriptionBadge } from "./Badges.tsx";
import { addressOf, CHANGE_LABELS, RECEIVER_LABELS, receiverOf } from "./labels.ts";
import {
  deliveriesQuery,
  type Delivery,
  type Subscription,
  subscriptionQuery,
  useDelete,
  useRedeliver,
  useSwitch,
  useTestDelivery,
} from "./queries.ts";

export function SubscriptionPage() {
  const { subscription: name } = subscriptionRoute.useParams();
  usePageTitle(name);
  const query = useQuery(subscriptionQuery(name));
  return (
    <Stack gap="md">
      <AnchorLink to="/subscriptions" size="sm">
        All subscriptions
      </AnchorLink>
      <Group justify="space-between">
        <Title order={1} size="h3" className={classes["name"]}>
          {escapeBidi(name)}
        </Title>
        {query.data !== undefined && <Actions subscription={query.data} />}
      </Group>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.data !== undefined && (
        <>
          <Facts subscription={query.data} />
          <Deliveries subscription={name} />
        </>
      )}
    </Stack>
  );
}

function Facts({ subscription }: { subscription: Subscription }) {
  const { workflow, label, secret, template, description, error } = subscription;
  const optional: readonly (readonly [string, string | null | undefined])[] = [
    ["Last attempt", error],
    ["Only workflow", workflow],
    ["Only labels", label.join(", ") || null],
    ["Signed with", secret.join(", ") || null],
    ["Text", template],
    ["Answer links", subscription.answer_links ? "Sent with questions" : null],
    ["Description", description],
  ];
  return (
    <dl className={classes["facts"]} data-testid="subscription-facts">
      <dt>Status</dt>
      <dd>
        <SubscriptionBadge status={subscription.status} />
        {subscription.failing_since !== null && (
          <Text size="xs" c="dimmed">
            since <Timestamp at={subscription.failing_since} />
          </Text>
        )}
      </dd>
      <dt>Sends to</dt>
      <dd>
        {RECEIVER_LABELS[receiverOf(subscription)]}: {escapeBidi(addressOf(subscription))}
      </dd>
      <dt>Reports</dt>
      <dd>{subscription.types.map((type) => CHANGE_LABELS[type]).join(", ")}</dd>
      {optional.map(
        ([name, text]) =>
          text != null && (
            <div key={name} style={{ display: "contents" }}>
              <dt>{name}</dt>
              <dd>{escapeBidi(text)}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

function Actions({ subscription }: { subscription: Subscription }) {
  const admin = usePermission("admin");
  const navigate = useNavigate();
  const [deleting, dialog] = useDisclosure();
  const switching = useSwitch(subscription.name);
  const testing = useTestDelivery(subscription.name);
  const failed = switching.error ?? testing.error;
  const refused = admin.allowed ? null : admin.reason;
  const isActive = subscription.status === "active" || subscription.status === "failing";
  const test = () =>
    testing.mutate(undefined, {
      onSuccess: (delivery) =>
        delivery.status === "delivered"
          ? toast("done", "The test was delivered.")
          : toast("failed", `The test failed: ${delivery.error ?? ""}`),
    });
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <ActionButton icon={Send} refused={refused} onPress={test} loading={testing.isPending} testId="test-delivery">
          Send a test
        </ActionButton>
        <ActionButton
          icon={isActive ? Pause : Play}
          refused={refused}
          onPress={() => switching.mutate(isActive ? "pause" : "resume")}
          loading={switching.isPending}
          testId="switch"
        >
          {isActive ? "Pause" : "Resume"}
        </ActionButton>
        <ActionButton
          icon={Pencil}
          refused={refused}
          onPress={() =>
            void navigate({ to: "/subscriptions/$subscription/edit", params: { subscription: subscription.name } })
          }
          testId="edit"
        >
          Edit
        </ActionButton>
        <ActionButton icon={Trash2} refused={refused} onPress={dialog.open} testId="delete">
          Delete
        </ActionButton>
      </Group>
      {failed !== null && <ProblemPanel error={failed} />}
      {deleting && <DeleteDialog subscription={subscription.name} onClose={dialog.close} />}
    </Stack>
  );
}

function DeleteDialog({ subscription, onClose }: { subscription: string; onClose: () => void }) {
  const deleting = useDelete(subscription);
  const navigate = useNavigate();
  const go = () =>
    deleting.mutate(undefined, {
      onSuccess: () => {
        toast("done", `Subscription ${subscription} deleted.`);
        void navigate({ to: "/subscriptions" });
      },
    });
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Delete the subscription ${subscription}?`}
      transitionProps={{ duration: 0 }}
    >
      <Stack gap="sm" data-testid="delete-dialog">
        <Text size="sm">Its history is deleted, and what it has not delivered is not sent. You cannot undo this.</Text>
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

function Deliveries({ subscription }: { subscription: string }) {
  const query = useInfiniteQuery(deliveriesQuery(subscription));
  const redelivering = useRedeliver(subscription);
  const deliveries = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap="xs" component="section" aria-label="Deliveries">
      <Title order={2} size="h5">
        Deliveries
      </Title>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {redelivering.error !== null && <ProblemPanel error={redelivering.error} />}
      {query.isSuccess && deliveries.length === 0 && (
        <Text size="sm" c="dimmed" data-testid="no-deliveries">
          Nothing has been reported yet.
        </Text>
      )}
      {deliveries.length > 0 && (
        <ColumnTable columns={["Created", "Change", "Status", "Run or reason", "Again"]} testid="deliveries">
          {deliveries.map((delivery) => (
            <DeliveryRow
              key={delivery.id}
              delivery={delivery}
              onRedeliver={() => redelivering.mutate(delivery.id)}
              isRedelivering={redelivering.isPending && redelivering.variables === delivery.id}
            />
          ))}
        </ColumnTable>
      )}
      {query.hasNextPage && (
        <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Load older deliveries
        </Button>
      )}
    </Stack>
  );
}

function DeliveryRow({
  delivery,
  onRedeliver,
  isRedelivering,
}: {
  delivery: Delivery;
  onRedeliver: () => void;
  isRedelivering: boolean;
}) {
  const admin = usePermission("admin");
  const pending = delivery.status === "pending" ? "It is still being sent." : null;
  return (
    <Table.Tr data-testid="delivery">
      <Table.Td className={classes["when"]}>
        <Timestamp at={delivery.created_at} />
      </Table.Td>
      <Table.Td className={classes["name"]}>{delivery.type}</Table.Td>
      <Table.Td>
        <DeliveryBadge status={delivery.status} />
        <Text size="xs" c="dimmed">
          {delivery.attempts === 1 ? "1 attempt" : `${delivery.attempts} attempts`}
        </Text>
      </Table.Td>
      <Table.Td className={classes["name"]}>
        {delivery.run_id !== null && (
          <AnchorLink to="/runs/$run" params={{ run: delivery.run_id }} search={{}} ff="monospace" size="sm">
            {delivery.run_id}
          </AnchorLink>
        )}
        {delivery.error !== null && <Text size="sm">{escapeBidi(delivery.error)}</Text>}
      </Table.Td>
      <Table.Td>
        <ActionButton
          icon={RotateCcw}
          refused={admin.allowed ? pending : admin.reason}
          onPress={onRedeliver}
          loading={isRedelivering}
          testId="redeliver"
        >
          Redeliver
        </ActionButton>
      </Table.Td>
    </Table.Tr>
  );
}
