/** The A2A card of a published agent or workflow as callers see it, with a command that sends a first message. */

import { Badge, Code, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { CopyTextButton } from "../app/CopyTextButton.tsx";
import { Loading } from "../app/Loading.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { JsonTree } from "../runs/inspector/JsonTree.tsx";
import { type PublicationKind, publishedCardQuery } from "./queries.ts";
import { firstMessageCurl } from "./curl.ts";
import classes from "./publishing.module.css";

export function PublishedCard({ kind, name }: { kind: PublicationKind; name: string }) {
  const query = useQuery(publishedCardQuery(kind, name));
  if (query.data === undefined) {
    return query.error === null ? <Loading /> : <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  }
  const card = query.data;
  const url = card.supportedInterfaces[0]?.url ?? "";
  const needsKey = card.securitySchemes !== undefined;
  const curl = firstMessageCurl(url, needsKey);
  return (
    <Stack gap="md" data-testid="published-card">
      <Group gap="sm">
        <Badge variant="light" tt="none" color={needsKey ? "gray" : "orange"} data-testid="published-security">
          {needsKey ? "Needs an API key" : "No API key needed"}
        </Badge>
        <Text size="sm" className={classes["wrap"]} data-testid="published-url">
          {url}
        </Text>
        <CopyTextButton text={url} label="Copy address" testid="copy-address" />
      </Group>
      <section aria-labelledby="first-message-heading">
        <Group justify="space-between" mb={6}>
          <Title order={2} size="h5" id="first-message-heading">
            Send a first message
          </Title>
          <CopyTextButton text={curl} label="Copy curl" testid="copy-first-message" />
        </Group>
        <Code block className={classes["wrap"]} tabIndex={0} data-testid="first-message">
          {curl}
        </Code>
      </section>
      <section aria-labelledby="published-card-heading">
        <Title order={2} size="h5" mb={6} id="published-card-heading">
          Card
        </Title>
        <JsonTree value={card} root="card" label="Card" />
      </section>
    </Stack>
  );
}
