/** Registers an agent. */

import { Stack, Title } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { api, body } from "../api/client.ts";
import { AnchorLink, ButtonLink } from "../app/links.tsx";
import { usePageTitle } from "../app/title.ts";
import { toast } from "../app/toasts.ts";
import { AgentForm } from "./AgentForm.tsx";
import { documentOf, type Fields, FRESH } from "./formFields.ts";

export function NewAgentPage() {
  usePageTitle("Register an agent");
  const [fields, setFields] = useState<Fields>(FRESH);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const create = useMutation({
    mutationFn: () => body(api.POST("/api/v1/agents", { body: documentOf(fields) as never })),
    onSuccess: (agent) => {
      void queries.invalidateQueries({ queryKey: ["agents"] });
      toast("done", `Registered ${agent.name}.`);
      void navigate({ to: "/agents/$agent", params: { agent: agent.name }, search: {} });
    },
  });
  return (
    <Stack gap="sm">
      <AnchorLink to="/agents" size="sm">
        All agents
      </AnchorLink>
      <Title order={1} size="h3">
        Register an agent
      </Title>
      <AgentForm
        fields={fields}
        change={(part) => setFields((now) => ({ ...now, ...part }))}
        error={create.error}
        hasSecret={false}
        isSending={create.isPending}
        send={() => create.mutate()}
        word="Register"
        extraActions={
          <ButtonLink variant="default" to="/agents">
            Cancel
          </ButtonLink>
        }
      />
    </Stack>
  );
}
