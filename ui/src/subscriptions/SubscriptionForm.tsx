/** Creates a subscription, or changes one. */

import { Button, Checkbox, Group, Select, SimpleGrid, Stack, Textarea, TextInput, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { AnchorLink, ButtonLink } from "../app/links.tsx";
import { Loading } from "../app/Loading.tsx";
import { NotAllowed } from "../app/NotAllowed.tsx";
import { usePermission } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { editSubscriptionRoute } from "../app/router.tsx";
import { usePageTitle } from "../app/title.ts";
import { toast } from "../app/toasts.ts";
import classes from "../triggers/triggers.module.css";
import { CHANGE_LABELS, type Receiver, RECEIVER_LABELS, receiverOf, RECEIVERS } from "./labels.ts";
import { type ChangeType, type Subscription, subscriptionQuery, type SubscriptionRequest, useSave } from "./queries.ts";

interface Fields {
  readonly name: string;
  readonly description: string;
  readonly receiver: Receiver;
  readonly url: string;
  /** Separated by commas, like the labels and the secrets. */
  readonly mail: string;
  readonly types: readonly string[];
  readonly workflow: string;
  readonly label: string;
  readonly secret: string;
  readonly template: string;
  readonly links: boolean;
  readonly enabled: boolean;
}

const EMPTY: Fields = {
  name: "",
  description: "",
  receiver: "cloudevents",
  url: "",
  mail: "",
  types: ["run.failed"],
  workflow: "",
  label: "",
  secret: "",
  template: "",
  links: false,
  enabled: true,
};

export function NewSubscriptionPage() {
  usePageTitle("New subscription");
  return <SubscriptionForm heading="New subscription" initial={EMPTY} isNew />;
}

export function EditSubscriptionPage() {
  const { subscription } = editSubscriptionRoute.useParams();
  usePageTitle(`Edit ${subscription}`);
  // What others save meanwhile does not change the form.
  const query = useQuery({ ...subscriptionQuery(subscription), refetchInterval: false, refetchOnWindowFocus: false });
  if (query.error !== null) return <ProblemPanel error={query.error} again={() => void query.refetch()} />;
  if (query.data === undefined) return <Loading />;
  return (
    <SubscriptionForm
      key={subscription}
      heading={`Edit ${subscription}`}
      initial={fieldsOf(query.data)}
      isNew={false}
    />
  );
}

function SubscriptionForm({ heading, initial, isNew }: { heading: string; initial: Fields; isNew: boolean }) {
  const may = usePermission("admin");
  const navigate = useNavigate();
  const [fields, setFields] = useState(initial);
  const saving = useSave(isNew);
  const change = (part: Partial<Fields>) => setFields({ ...fields, ...part });
  const isEvent = fields.receiver === "cloudevents";
  const save = () =>
    saving.mutate(requestOf(fields), {
      onSuccess: (saved) => {
        toast("done", `Saved subscription ${saved.name}.`);
        void navigate({ to: "/subscriptions/$subscription", params: { subscription: saved.name } });
      },
    });
  return (
    <Stack gap="sm">
      <AnchorLink to="/subscriptions" size="sm">
        All subscriptions
      </AnchorLink>
      <Title order={1} size="h3" className={classes["name"]}>
        {heading}
      </Title>
      <NotAllowed may={may} title="Subscriptions are changed by admins" />
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (may.allowed) save();
        }}
        data-testid="subscription-form"
      >
        <Stack gap="sm" maw={720}>
          {isNew && (
            <TextInput
              label="Name"
              required
              value={fields.name}
              onChange={(event) => change({ name: event.currentTarget.value })}
              data-testid="subscription-name"
            />
          )}
          <TextInput
            label="Description"
            value={fields.description}
            onChange={(event) => change({ description: event.currentTarget.value })}
          />
          <Select
            label="Send to"
            data={RECEIVERS.map((value) => ({ value, label: RECEIVER_LABELS[value] }))}
            value={fields.receiver}
            allowDeselect={false}
            onChange={(value) => change({ receiver: RECEIVERS.find((each) => each === value) ?? "cloudevents" })}
            data-testid="subscription-receiver"
          />
          {fields.receiver === "mail" ? (
            <TextInput
              label="Mail addresses"
              description="Separated by commas. assignees: the people whose answer a question waits for."
              required
              value={fields.mail}
              onChange={(event) => change({ mail: event.currentTarget.value })}
              data-testid="subscription-mail"
            />
          ) : (
            <TextInput
              label="URL"
              required
              value={fields.url}
              onChange={(event) => change({ url: event.currentTarget.value })}
              data-testid="subscription-url"
            />
          )}
          <Checkbox.Group
            label="Report when"
            required
            value={[...fields.types]}
            onChange={(types) => change({ types })}
          >
            <SimpleGrid cols={{ base: 1, sm: 2 }} spacing={6} pt={6}>
              {Object.entries(CHANGE_LABELS).map(([value, label]) => (
                <Checkbox key={value} value={value} label={label} />
              ))}
            </SimpleGrid>
          </Checkbox.Group>
          <TextInput
            label="Only runs of the workflow"
            value={fields.workflow}
            onChange={(event) => change({ workflow: event.currentTarget.value })}
          />
          <TextInput
            label="Only runs with the labels"
            description="As key:value, separated by commas. A run must have all of them."
            value={fields.label}
            onChange={(event) => change({ label: event.currentTarget.value })}
            data-testid="subscription-label"
          />
          {isEvent ? (
            <TextInput
              label="Signing secret"
              description="The name of a secret, or two names during a rotation, separated by a comma."
              value={fields.secret}
              onChange={(event) => change({ secret: event.currentTarget.value })}
            />
          ) : (
            <Textarea
              label="Text"
              description="With expressions over the event, such as ${ event.data.workflow }. Empty: what has changed."
              autosize
              minRows={2}
              value={fields.template}
              onChange={(event) => change({ template: event.currentTarget.value })}
              data-testid="subscription-template"
            />
          )}
          <Checkbox
            label="Send answer links with questions"
            description="Everyone who can read them can answer in the name of the assignee."
            checked={fields.links}
            onChange={(event) => change({ links: event.currentTarget.checked })}
          />
          {saving.error !== null && <ProblemPanel error={saving.error} />}
          <Group gap="sm">
            <Button type="submit" loading={saving.isPending} disabled={!may.allowed} data-testid="save-subscription">
              Save
            </Button>
            <ButtonLink variant="default" to="/subscriptions">
              Cancel
            </ButtonLink>
          </Group>
        </Stack>
      </form>
    </Stack>
  );
}

function fieldsOf(subscription: Subscription): Fields {
  return {
    name: subscription.name,
    description: subscription.description ?? "",
    receiver: receiverOf(subscription),
    url: subscription.url ?? "",
    mail: subscription.mail.join(", "),
    types: subscription.types,
    workflow: subscription.workflow ?? "",
    label: subscription.label.join(", "),
    secret: subscription.secret.join(", "),
    template: subscription.template ?? "",
    links: subscription.answer_links,
    enabled: subscription.enabled,
  };
}

/** Empty fields are left out. */
function requestOf(fields: Fields): SubscriptionRequest {
  const { receiver } = fields;
  const isMail = receiver === "mail";
  return {
    name: fields.name,
    types: fields.types as ChangeType[],
    answer_links: fields.links,
    enabled: fields.enabled,
    ...(isMail ? { mail: split(fields.mail) } : { url: fields.url.trim(), format: receiver }),
    ...(fields.description === "" ? {} : { description: fields.description }),
    ...(fields.workflow === "" ? {} : { workflow: fields.workflow }),
    ...(split(fields.label).length === 0 ? {} : { label: split(fields.label) }),
    ...(receiver !== "cloudevents" || split(fields.secret).length === 0 ? {} : { secret: split(fields.secret) }),
    ...(receiver === "cloudevents" || fields.template === "" ? {} : { template: fields.template }),
  } as SubscriptionRequest;
}

function split(text: string): string[] {
  return text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "");
}
