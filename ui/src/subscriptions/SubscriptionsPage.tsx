/** The list of subscriptions. */

import { Button, Code, Group, Stack, Table, Text, Title } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";

import { escapeBidi } from "../app/bidi.ts";
import { AnchorLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { usePermission } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { ActionButton } from "../runs/actions/ActionButton.tsx";
import classes from "../triggers/triggers.module.css";
import { SubscriptionBadge } from "./Badges.tsx";
import { addressOf, CHANGE_LABELS, RECEIVER_LABELS, receiverOf } from "./labels.ts";
import { type Subscription, subscriptionsQuery } from "./queries.ts";

export function SubscriptionsPage() {
  const query = useInfiniteQuery(subscriptionsQuery);
  const navigate = useNavigate();
  const may = usePermission("admin");
  const subscriptions = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <Title order={1} size="h3">
          Subscriptions
        </Title>
        <ActionButton
          icon={Plus}
          refused={may.allowed ? null : may.reason}
          filled
          size="sm"
          onPress={() => void navigate({ to: "/new-subscription" })}
          testId="new-subscription"
        >
          New subscription
        </ActionButton>
      </Group>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.isSuccess && subscriptions.length === 0 && (
        <Text data-testid="no-subscriptions">
          No subscriptions yet. A subscription reports changes to another system, to Slack or Teams, or by mail. In a
          terminal: <Code>trunkline subscriptions apply FILE</Code>
        </Text>
      )}
      {subscriptions.length > 0 && (
        <Table.ScrollContainer minWidth={0}>
          <Table highlightOnHover verticalSpacing={6} data-testid="subscriptions">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Subscription</Table.Th>
                <Table.Th>Status</Table.Th>
                <Table.Th visibleFrom="sm">Sends to</Table.Th>
                <Table.Th visibleFrom="md">Reports</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {subscriptions.map((subscription) => (
                <Row key={subscription.id} subscription={subscription} />
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      {query.hasNextPage && (
        <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          Load more subscriptions
        </Button>
      )}
    </Stack>
  );
}

function Row({ subscription }: { subscription: Subscription }) {
  return (
    <Table.Tr data-testid="subscription-row" data-name={subscription.name}>
      <Table.Td className={classes["name"]}>
        <AnchorLink to="/subscriptions/$subscription" params={{ subscription: subscription.name }} size="sm">
          {subscription.name}
        </AnchorLink>
      </Table.Td>
      <Table.Td>
        <SubscriptionBadge status={subscription.status} />
      </Table.Td>
      <Table.Td visibleFrom="sm" className={classes["name"]}>
        {RECEIVER_LABELS[receiverOf(subscription)]}
        <Text size="xs" c="dimmed">
          {escapeBidi(addressOf(subscription))}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="md">{subscription.types.map((type) => CHANGE_LABELS[type]).join(", ")}</Table.Td>
    </Table.Tr>
  );
}
