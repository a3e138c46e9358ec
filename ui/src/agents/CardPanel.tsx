/** An agent's card, fetched now. Its content is untrusted and rendered as plain text. */

import { Anchor, Badge, Button, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";

import { Loading } from "../app/Loading.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { safeLink } from "../runs/inspector/files.ts";
import { JsonTree } from "../runs/inspector/JsonTree.tsx";
import type { Json } from "../runs/inspector/jsonRows.ts";
import classes from "./agents.module.css";
import { cardOf, type Skill } from "./card.ts";
import { Callout } from "./Callout.tsx";
import { type Agent, type CardView, cardQuery } from "./queries.ts";

export function CardPanel({ agent }: { agent: Agent }) {
  const query = useQuery(cardQuery(agent.name));
  if (query.data === undefined) {
    return query.error === null ? <Loading /> : <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  }
  const view = query.data;
  return (
    <Stack gap="md">
      <Group gap="md" justify="space-between">
        <Text size="sm" c="dimmed" className={classes["wrap"]}>
          Fetched <Timestamp at={view.asked_at} />
          {view.url === null ? "" : ` from ${view.url}`}
        </Text>
        <Button
          size="xs"
          variant="default"
          leftSection={<RefreshCw size={15} aria-hidden />}
          loading={query.isFetching}
          onClick={() => void query.refetch()}
          data-testid="read-card"
        >
          Reload
        </Button>
      </Group>
      {query.error !== null && <ProblemPanel error={query.error} />}
      {view.changed === true && (
        <Callout weight="caution" title="The card has changed" testId="card-changed">
          <Text size="sm">
            The agent's protocol was detected from an older card. Re-detect the protocol to use this one.
          </Text>
        </Callout>
      )}
      {view.card === null ? <NoCard view={view} /> : <Card card={view.card} />}
    </Stack>
  );
}

function NoCard({ view }: { view: CardView }) {
  return (
    <Stack gap={4} data-testid="no-card">
      <Text>This agent has no card.</Text>
      <Text size="sm" c="dimmed">
        {view.detail}
      </Text>
    </Stack>
  );
}

function Card({ card }: { card: Json }) {
  const { name, description, version, provider, links, interfaces, capabilities, skills } = cardOf(card);
  return (
    <div className={classes["columns"]}>
      <Stack gap="md" data-testid="card">
        <section className={classes["box"]} aria-label="Agent card">
          <Title order={2} size="h5" className={classes["wrap"]}>
            {name ?? "Unnamed agent"}
          </Title>
          {description !== null && (
            <Text size="sm" mt={4} className={classes["wrap"]}>
              {description}
            </Text>
          )}
          <dl className={classes["facts"]} style={{ marginTop: 8 }}>
            {version !== null && (
              <>
                <dt>Version</dt>
                <dd>{version}</dd>
              </>
            )}
            {provider !== null && (
              <>
                <dt>Provider</dt>
                <dd>{provider}</dd>
              </>
            )}
            {interfaces.map((each, place) => (
              <Interface key={place} {...each} />
            ))}
            {capabilities.length > 0 && (
              <>
                <dt>Capabilities</dt>
                <dd>{capabilities.join(", ")}</dd>
              </>
            )}
            {links.map(({ word, url }) => (
              <ExternalLinkFact key={word} word={word} url={url} />
            ))}
          </dl>
        </section>
        {skills.length > 0 && (
          <section className={classes["box"]} aria-labelledby="skills-heading">
            <Title order={2} size="h5" mb="xs" id="skills-heading">
              Skills
            </Title>
            <Stack gap="sm">
              {skills.map((skill, place) => (
                <SkillText key={place} skill={skill} />
              ))}
            </Stack>
          </section>
        )}
      </Stack>
      <section className={classes["box"]} aria-labelledby="raw-heading" data-testid="raw-card">
        <Title order={2} size="h5" mb="xs" id="raw-heading">
          Raw card
        </Title>
        <JsonTree value={card} root="card" label="card" />
      </section>
    </div>
  );
}

function Interface({ transport, version, url }: { transport: string; version: string | null; url: string | null }) {
  return (
    <>
      <dt>
        {transport}
        {version === null ? "" : ` ${version}`}
      </dt>
      <dd>{url ?? "at the registered URL"}</dd>
    </>
  );
}

function ExternalLinkFact({ word, url }: { word: string; url: string }) {
  const safe = safeLink(url);
  return (
    <>
      <dt>{word}</dt>
      <dd>
        {safe === null ? (
          url
        ) : (
          <Anchor href={safe} target="_blank" rel="noopener noreferrer" size="sm">
            {url}
          </Anchor>
        )}
      </dd>
    </>
  );
}

function SkillText({ skill }: { skill: Skill }) {
  return (
    <div data-testid="skill">
      <Group gap="xs">
        <Text size="sm" fw={600} className={classes["wrap"]}>
          {skill.name}
        </Text>
        {skill.tags.map((tag) => (
          <Badge key={tag} variant="default" size="sm" tt="none" fw={500}>
            {tag}
          </Badge>
        ))}
      </Group>
      {skill.description !== null && (
        <Text size="sm" className={classes["wrap"]}>
          {skill.description}
        </Text>
      )}
      {skill.examples.map((example) => (
        <Text key={example} size="sm" c="dimmed" className={classes["wrap"]}>
          “{example}”
        </Text>
      ))}
    </div>
  );
}
