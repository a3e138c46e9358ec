/** The details of an exchange: request, response, notes, and commands that repeat it. */

import { Alert, Code, Group, List, Stack, Text } from "@mantine/core";
import { Info, TriangleAlert } from "lucide-react";

import { CopyTextButton } from "../app/CopyTextButton.tsx";
import { BodyText } from "./BodyText.tsx";
import { bodyFileOf, canRepeat, commandOf, FORMS } from "./commands.ts";
import { errorText, type Exchange, isIncoming, kindOf, KINDS } from "./exchange.ts";
import { FrameList } from "./FrameList.tsx";
import { HeaderTable } from "./HeaderTable.tsx";
import { timingWords } from "./Timing.tsx";
import classes from "./wire.module.css";

export function ExchangeDetail({ exchange }: { exchange: Exchange }) {
  const { request, response, notes } = exchange;
  const kind = kindOf(exchange);
  const error = errorText(exchange.error);
  const bodyFile = canRepeat(exchange) ? bodyFileOf(exchange) : null;
  const [asked, answered] = isIncoming(exchange)
    ? [`Request from the ${kind === "push" ? "agent" : "caller"}`, "Response from Trunkline"]
    : ["Request", "Response"];
  return (
    <Stack gap="sm" className={classes["detail"]} data-testid="exchange-detail">
      <Group justify="space-between" gap="xs">
        <Text size="sm">
          {KINDS[kind].meaning}. Duration: {timingWords(exchange)}.
        </Text>
        {canRepeat(exchange) && (
          <Group gap={6}>
            {FORMS.map(({ form, name }) => (
              <CopyTextButton
                key={form}
                text={() => commandOf(exchange, form)}
                label={name}
                aria-label={`Copy the request as ${name}`}
                testid={`copy-${form}`}
              />
            ))}
          </Group>
        )}
      </Group>
      {bodyFile !== null && (
        <Text size="sm" data-testid="cut-command">
          The recorded request body is truncated. A copied command reads it from the file <Code>{bodyFile}</Code>, so
          put the whole body there first.
        </Text>
      )}
      {error !== null && (
        <Alert color="red" variant="light" icon={<TriangleAlert size={16} />} p="xs" data-testid="exchange-error">
          {error}
        </Alert>
      )}
      {notes.length > 0 && (
        <Alert color="blue" variant="light" icon={<Info size={16} />} p="xs" data-testid="exchange-notes">
          <List size="sm" listStyleType="none">
            {notes.map((note, place) => (
              <List.Item key={place}>{note}</List.Item>
            ))}
          </List>
        </Alert>
      )}
      <section aria-label={asked} data-testid="request">
        <h4 className={classes["part"]}>{asked}</h4>
        <Text ff="monospace" size="sm" className={classes["address"]}>
          {request.method} {request.url}
        </Text>
        <HeaderTable headers={request.headers} label="Request headers" />
        <BodyText text={request.body} label="request body" />
      </section>
      <section aria-label={answered} data-testid="response">
        <h4 className={classes["part"]}>{answered}</h4>
        {response === null ? (
          <Text size="sm" c="dimmed">
            No response.
          </Text>
        ) : (
          <>
            <Text ff="monospace" size="sm">
              HTTP {response.status}
            </Text>
            <HeaderTable headers={response.headers} label="Response headers" />
            {exchange.frames !== null && exchange.frames !== undefined && exchange.frames.length > 0 ? (
              <FrameList frames={exchange.frames} />
            ) : (
              <BodyText text={response.body} label="response body" />
            )}
          </>
        )}
      </section>
    </Stack>
  );
}
