/** What the run that asks was given: it tells runs of one workflow apart. Read when somebody wants to see it. */

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
    // What is searched for in the input is no answer that has been begun.
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
        {opened ? "Hide the run's input" : "The run's input"}
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
