/** The input of the item's run, loaded on request. It helps to tell runs of the same workflow apart. */

import { Anchor, Collapse, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Loading } from "../app/Loading.tsx";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { type Form, ValueView } from "../runs/inspector/ValueView.tsx";
import { runQuery } from "../runs/useChildGraphs.ts";

export function RunInput({ run }: { run: string }) {
  const [opened, { toggle }] = useDisclosure();
  return (
    // Typing in the search field does not count as a started reply.
    <Stack gap={4} onInput={(event) => event.stopPropagation()}>
      <Anchor
        component="button"
        type="button"
        size="sm"
        w="fit-content"
        onClick={toggle}
        aria-expanded={opened}
        data-testid="show-input"
      >
        {opened ? "Hide run input" : "Show run input"}
      </Anchor>
      <Collapse expanded={opened}>{opened && <Input run={run} />}</Collapse>
    </Stack>
  );
}

function Input({ run }: { run: string }) {
  const query = useQuery(runQuery(run));
  const [form, setForm] = useState<Form | null>(null);
  if (query.data !== undefined)
    return <ValueView value={query.data.input} root="input" label="input" form={form} onForm={setForm} />;
  return query.error === null ? (
    <Loading lines={2} />
  ) : (
    <ProblemPanel error={query.error} again={() => void query.refetch()} />
  );
}
