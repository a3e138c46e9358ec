/** Plain text. Long texts are truncated with a notice, and can be downloaded. */

import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";

import { sizeOf } from "../../app/bytes.ts";
import { CopyTextButton } from "../../app/CopyTextButton.tsx";
import { download } from "../../app/download.ts";
import classes from "./inspector.module.css";

const MOST = 50_000;
const MOST_ON_WISH = 1_000_000;

export function LongText({ text, label, name, lines }: { text: string; label: string; name: string; lines?: number }) {
  const [most, setMost] = useState(MOST);
  const isCut = text.length > most;
  return (
    <div>
      <pre
        className={classes["text"]}
        style={lines === undefined ? undefined : { maxHeight: `${lines * 1.6}em` }}
        tabIndex={0}
        aria-label={label}
        data-testid="text"
      >
        {isCut ? text.slice(0, most) : text}
      </pre>
      <Group gap="xs" mt={6}>
        <CopyTextButton text={text} label="Copy" aria-label={`Copy: ${label}`} />
        {isCut && (
          <>
            <Text size="xs" data-testid="cut">
              {most.toLocaleString()} of {text.length.toLocaleString()} characters are shown.
            </Text>
            {most < MOST_ON_WISH && (
              <Button size="compact-xs" variant="default" onClick={() => setMost(MOST_ON_WISH)}>
                Show more
              </Button>
            )}
            <Button size="compact-xs" variant="default" onClick={() => download(text, name)}>
              Download {sizeOf(new TextEncoder().encode(text).length)}
            </Button>
          </>
        )}
      </Group>
    </div>
  );
}
