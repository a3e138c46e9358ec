/** Says that Trunkline does not answer, since when, and when it is asked again; goes away by itself. */

import { Button, Text, VisuallyHidden } from "@mantine/core";
import { Unplug } from "lucide-react";
import { useRef } from "react";

import { askAgain, useConnection, type Connection } from "../api/connection.ts";
import classes from "./ConnectionBanner.module.css";
import { useNow } from "./Timestamp.tsx";

export function ConnectionBanner() {
  const connection = useConnection();
  const wasLost = useRef(false);
  wasLost.current ||= !connection.answers;
  return (
    <>
      {!connection.answers && <Lost connection={connection} />}
      <VisuallyHidden role="status">
        {!connection.answers ? "Trunkline does not answer." : wasLost.current ? "Trunkline answers again." : ""}
      </VisuallyHidden>
    </>
  );
}

function Lost({ connection }: { connection: Connection }) {
  const now = useNow();
  const { lostAt, nextAt } = connection;
  return (
    <div className={classes["banner"]} data-testid="connection-lost">
      <Unplug size={16} aria-hidden className={classes["icon"]} />
      <Text size="sm" className={classes["text"]}>
        <strong>Trunkline does not answer</strong>
        {lostAt !== null && now - lostAt >= 1_000 && ` for ${wholeSeconds(now - lostAt)}`}. What is shown is from
        before. {nextAt === null ? "Asking…" : "This page asks again by itself."}
      </Text>
      <Button size="compact-xs" variant="default" onClick={askAgain} data-testid="ask-again">
        Ask now
      </Button>
    </div>
  );
}

function wholeSeconds(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
}
