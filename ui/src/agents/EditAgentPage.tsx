/** Edits the registration of an agent. Concurrent changes are never overwritten. */

import { Stack, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { api } from "../api/client.ts";
import { Loading } from "../app/Loading.tsx";
import { AnchorLink, ButtonLink } from "../app/links.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { editAgentRoute } from "../app/router.tsx";
import { usePageTitle } from "../app/title.ts";
import { toast } from "../app/toasts.ts";
import { AgentForm } from "./AgentForm.tsx";
import { type Fields, fieldsOf, patchOf } from "./formFields.ts";
import type { Agent } from "./queries.ts";

interface Read {
  readonly agent: Agent;
  /** The ETag of the version that was read. */
  readonly tag: string | null;
}

export function EditAgentPage() {
  const { agent } = editAgentRoute.useParams();
  usePageTitle(`Edit ${agent}`);
  const query = useQuery({
    queryKey: ["agents", "to-change", agent],
    queryFn: async ({ signal }): Promise<Read> => {
      const { data, response } = await api.GET("/api/v1/agents/{agent}", { params: { path: { agent } }, signal });
      return { agent: data as Agent, tag: response.headers.get("ETag") };
    },
    // The form keeps the version that was read when it was opened.
    gcTime: 0,
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
  return (
    <Stack gap="sm">
      <AnchorLink to="/agents/$agent" params={{ agent }} size="sm">
        Back to {agent}
      </AnchorLink>
      <Title order={1} size="h3">
        Edit {agent}
      </Title>
      {query.error !== null && <ProblemPanel error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.data !== undefined && <Changes read={query.data} />}
    </Stack>
  );
}

function Changes({ read }: { read: Read }) {
  const { agent, tag } = read;
  const before = fieldsOf(agent);
  const [fields, setFields] = useState<Fields>(before);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const patch = patchOf(before, fields);
  const change = useMutation({
    mutationFn: () =>
      api.PATCH("/api/v1/agents/{agent}", {
        params: { path: { agent: agent.name }, ...(tag === null ? {} : { header: { "If-Match": tag } }) },
        body: patch as never,
      }),
    onSuccess: ({ data }) => {
      const name = data?.name ?? agent.name;
      void queries.invalidateQueries({ queryKey: ["agents"] });
      toast("done", `Saved ${name}.`);
      void navigate({ to: "/agents/$agent", params: { agent: name }, search: {} });
    },
  });
  return (
    <AgentForm
      fields={fields}
      change={(part) => setFields((now) => ({ ...now, ...part }))}
      error={change.error}
      hasSecret={agent.auth_type !== "none" && fields.authType === agent.auth_type}
      isSending={change.isPending}
      send={() => {
        if (patch === null) void navigate({ to: "/agents/$agent", params: { agent: agent.name }, search: {} });
        else change.mutate();
      }}
      word="Save"
      extraActions={
        <ButtonLink variant="default" to="/agents/$agent" params={{ agent: agent.name }}>
          Cancel
        </ButtonLink>
      }
    />
  );
}
