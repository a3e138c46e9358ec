/** The comments of people on an inbox item. They are no part of the answer. */

import { Button, Group, Stack, Text, Textarea, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { escapeBidi } from "../app/bidi.ts";
import { usePermission } from "../app/permissions.ts";
import { ProblemPanel } from "../app/ProblemPanel.tsx";
import { Timestamp } from "../app/Timestamp.tsx";
import classes from "./InboxItemForm.module.css";
import { commentsQuery, useComment } from "./queries.ts";

export function Comments({ item, heading }: { readonly item: string; readonly heading: 3 | 4 }) {
  const comments = useQuery(commentsQuery(item)).data ?? [];
  const may = usePermission("operator");
  const [text, setText] = useState("");
  const comment = useComment(item);
  const send = () => comment.mutate(text, { onSuccess: () => setText("") });
  return (
    <Stack gap="xs" component="section" aria-label="Comments" data-testid="comments">
      <Title order={heading} size="h6">
        Comments
      </Title>
      {comments.length === 0 && (
        <Text size="sm" c="dimmed">
          Only people see comments. They are not sent with the answer.
        </Text>
      )}
      {comments.map((each, index) => (
        <div key={index} data-testid="comment">
          <Text size="xs" c="dimmed">
            {escapeBidi(each.by ?? "Unknown person")} · <Timestamp at={each.at} />
          </Text>
          <Text size="sm" className={classes["words"]}>
            {each.text}
          </Text>
        </div>
      ))}
      {may.allowed && (
        <>
          <Textarea
            aria-label="New comment"
            placeholder="Comment"
            autosize
            minRows={1}
            maxRows={8}
            maxLength={10_000}
            value={text}
            // Typing a comment does not select the item.
            onInput={(event) => event.stopPropagation()}
            onChange={(event) => setText(event.currentTarget.value)}
            data-testid="comment-text"
          />
          {comment.error !== null && <ProblemPanel error={comment.error} />}
          <Group>
            <Button
              size="xs"
              variant="default"
              loading={comment.isPending}
              disabled={text.trim() === ""}
              onClick={send}
              data-testid="add-comment"
            >
              Add comment
            </Button>
          </Group>
        </>
      )}
    </Stack>
  );
}
