/** A shortened id with a button that copies the whole id. */

import { ActionIcon } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { Check, Copy } from "lucide-react";

import classes from "./RunPage.module.css";

export function CopyId({ id, name }: { id: string; name: string }) {
  const { copy, copied } = useClipboard({ timeout: 1_500 });
  const Icon = copied ? Check : Copy;
  return (
    <>
      <span className={classes["id"]} title={id}>
        {id}
      </span>
      <ActionIcon
        variant="subtle"
        color="gray"
        size={24}
        aria-label={copied ? `Copied the ${name}` : `Copy the ${name}`}
        onClick={() => copy(id)}
        data-testid={`copy-${name.replaceAll(" ", "-")}`}
      >
        <Icon size={13} aria-hidden />
      </ActionIcon>
    </>
  );
}
