/** One file. Images are shown, other files can be downloaded. A file from an agent is never opened as a page. */

import { Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { Download, ExternalLink, File, Image } from "lucide-react";
import { useEffect, useState } from "react";

import { sizeOf } from "../../app/bytes.ts";
import { download } from "../../app/download.ts";
import { ProblemPanel } from "../../app/ProblemPanel.tsx";
import { bytesOf, type FoundFile, pictureType, safeLink } from "./files.ts";
import classes from "./inspector.module.css";
import { bytesIn, useFileBytes } from "./useFileBytes.ts";

// Larger images are shown on request.
const SHOWN_AT_ONCE = 4_000_000;

export function FileCard({ file }: { file: FoundFile }) {
  const size = bytesOf(file);
  const type = pictureType(file.type);
  const Icon = type === null ? File : Image;
  return (
    <Stack gap="xs" className={classes["file"]} data-testid="file">
      <Group justify="space-between" gap="xs" wrap="nowrap">
        <Group gap="xs" wrap="nowrap" className={classes["fileName"]}>
          <Icon size={16} aria-hidden />
          <div className={classes["fileName"]}>
            <Text size="sm" fw={600} className={classes["path"]} title={file.name}>
              {file.name}
            </Text>
            <Text size="xs" c="dimmed" className={classes["path"]}>
              {[file.type, size === null ? null : sizeOf(size), file.where].filter(Boolean).join(" · ")}
            </Text>
          </div>
        </Group>
        {file.content.of === "link" ? <Link url={file.content.url} /> : <DownloadButton file={file} />}
      </Group>
      {type !== null && file.content.of !== "link" && <Picture file={file} type={type} size={size} />}
      {isDrawing(file.type) && (
        <Text size="xs" c="dimmed">
          SVG files can contain scripts, so they are not displayed. Download the file to view it.
        </Text>
      )}
    </Stack>
  );
}

function DownloadButton({ file }: { file: FoundFile }) {
  const [problem, setProblem] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const get = async () => {
    setBusy(true);
    setProblem(null);
    try {
      download(await bytesIn(file.content), file.name);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  if (problem !== null) return <ProblemPanel error={problem} again={() => void get()} />;
  return (
    <Button
      size="compact-xs"
      variant="default"
      flex="none"
      leftSection={<Download size={14} aria-hidden />}
      loading={busy}
      onClick={() => void get()}
      aria-label={`Download ${file.name}`}
      data-testid="download"
    >
      Download
    </Button>
  );
}

function Link({ url }: { url: string }) {
  const safe = safeLink(url);
  if (safe === null)
    return (
      <Text size="xs" c="dimmed" className={classes["path"]} title={url}>
        {url}
      </Text>
    );
  return (
    <Anchor href={safe} target="_blank" rel="noopener noreferrer" size="sm" className={classes["path"]}>
      <ExternalLink size={13} aria-hidden /> {safe}
    </Anchor>
  );
}

function Picture({ file, type, size }: { file: FoundFile; type: string; size: number | null }) {
  const [wished, setWished] = useState(size === null || size <= SHOWN_AT_ONCE);
  const bytes = useFileBytes(file, wished);
  const [made, setMade] = useState<{ readonly of: Uint8Array; readonly url: string } | null>(null);
  const [broken, setBroken] = useState<string | null>(null);
  useEffect(() => {
    if (bytes.data === undefined) return;
    const url = URL.createObjectURL(new Blob([bytes.data], { type }));
    setMade({ of: bytes.data, url });
    return () => URL.revokeObjectURL(url);
  }, [bytes.data, type]);
  // Do not show the image of the previous file.
  const url = made !== null && made.of === bytes.data ? made.url : null;
  if (!wished) {
    return (
      <Button size="compact-sm" variant="default" onClick={() => setWished(true)}>
        Show image{size === null ? "" : `, ${sizeOf(size)}`}
      </Button>
    );
  }
  if (bytes.error !== null)
    return <ProblemPanel error={bytes.error} {...(bytes.again === null ? {} : { again: bytes.again })} />;
  if (url !== null && broken === url)
    return (
      <Text size="xs" c="dimmed" data-testid="no-picture">
        The file is not a valid {type}.
      </Text>
    );
  if (url === null)
    return (
      <Text size="xs" c="dimmed">
        Loading image…
      </Text>
    );
  return (
    <img
      className={classes["picture"]}
      src={url}
      alt={file.name}
      onError={() => setBroken(url)}
      data-testid="picture"
    />
  );
}

function isDrawing(type: string): boolean {
  return type.toLowerCase().includes("svg");
}
