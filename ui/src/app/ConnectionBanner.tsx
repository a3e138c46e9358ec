/** A banner that is shown while the server is unreachable. */

import { Button, Text, VisuallyHidden } from "@mantine/core";
import { Unplug } from "lucide-react";
import { useRef } from "react";

import { retryNow, useConnection, type Connection } from "../api/connection.ts";
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
        {!connection.answers ? "Trunkline is not responding." : wasLost.current ? "Connection restored." : ""}
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
        <strong>Trunkline is not responding</strong>
        {lostAt !== null && now - lostAt >= 1_000 && ` (${wholeSeconds(now - lostAt)})`}. The data shown may be
        outdated. {nextAt === null ? "Reconnecting…" : "This page reconnects automatically."}
      </Text>
      <Button size="compact-xs" variant="default" onClick={retryNow} data-testid="ask-again">
        Retry now
      </Button>
    </div>
  );
}

function wholeSeconds(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
}
