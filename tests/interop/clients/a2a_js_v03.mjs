// A caller built with the A2A project's JavaScript SDK 0.3: URL [CARD]. Prints what it has been told, as one JSON object.

import { randomUUID } from "node:crypto";
import { ClientFactory } from "a2a-v0.3/client";

const client = await new ClientFactory().createFromUrl(process.argv[2] + "/", process.argv[3]);

const message = (text, taskId, ...more) => ({
  message: { kind: "message", role: "user", messageId: randomUUID(), parts: [{ kind: "text", text }, ...more], taskId },
});
const textIn = (parts) => parts.map((part) => part.text).join("");
const textOf = (task) => task.artifacts.map((artifact) => textIn(artifact.parts)).join("");

const kinds = [];
let streamed = "";
for await (const event of client.sendMessageStream(message("hello"))) {
  kinds.push(event.kind);
  if (event.kind === "artifact-update") streamed += textIn(event.artifact.parts);
}
const waited = await client.sendMessage(message("hello"));
const failed = await client.sendMessage(message("fail"));
const asking = await client.sendMessage(message("ask"));
const replied = await client.sendMessage(message("Rome", asking.id));
const begun = await client.sendMessage({ ...message("wait"), configuration: { blocking: false } });
const canceled = await client.cancelTask({ id: begun.id });
// A task that goes on while the caller does something else.
const long = await client.sendMessage({ ...message("long"), configuration: { blocking: false } });
const wasLong = long.status.state !== "completed";
await client.sendMessage(message("go on"));
let ended = long;
while (ended.status.state !== "completed") ended = await client.getTask({ id: long.id });
const file = { bytes: btoa("hello"), mimeType: "text/plain", name: "a.txt" };
const copied = (await client.sendMessage(message("copy", undefined, { kind: "file", file }))).artifacts[0].parts[0].file;
// Where the updates of a task are sent, if the server sends any.
const pushUrl = process.env.PUSH_URL;
if (pushUrl) {
  const pushNotificationConfig = { url: pushUrl, token: "a-token" };
  await client.sendMessage({ ...message("hello"), configuration: { blocking: true, pushNotificationConfig } });
}
const unknown = await client.getTask({ id: "unknown" }).catch((error) => error.name);

console.log(
  JSON.stringify({
    name: (await client.getAgentCard()).name,
    kinds,
    streamed,
    waited: textOf(waited),
    failed: [failed.status.state, textIn(failed.status.message.parts)],
    asking: [asking.status.state, textIn(asking.status.message.parts)],
    replied: textOf(replied),
    canceled: canceled.status.state,
    long: [wasLong, textOf(ended)],
    file: [copied.name, copied.mimeType, atob(copied.bytes)],
    unknown: unknown === "TaskNotFoundError" ? -32001 : unknown,
  }),
);
