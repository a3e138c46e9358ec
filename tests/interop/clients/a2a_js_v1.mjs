// A caller built with the A2A project's JavaScript SDK 1.x: URL. Prints what it has been told, as one JSON object.

import { randomUUID } from "node:crypto";
import { SendMessageRequest, StreamResponse, Task } from "a2a-v1";
import { ClientFactory } from "a2a-v1/client";

const client = await new ClientFactory().createFromUrl(process.argv[2] + "/");

const message = (text, taskId, configuration, ...more) =>
  SendMessageRequest.fromJSON({
    message: { role: "ROLE_USER", messageId: randomUUID(), parts: [{ text }, ...more], taskId },
    configuration,
  });
const sent = async (...given) => Task.toJSON(await client.sendMessage(message(...given)));
const textIn = (parts) => parts.map((part) => part.text).join("");
const textOf = (task) => task.artifacts.map((artifact) => textIn(artifact.parts)).join("");
const stateOf = (task) => task.status.state.replace("TASK_STATE_", "").toLowerCase().replace("_", "-");

const kinds = [];
let streamed = "";
for await (const event of client.sendMessageStream(message("hello"))) {
  const [[kind, value]] = Object.entries(StreamResponse.toJSON(event));
  kinds.push({ statusUpdate: "status-update", artifactUpdate: "artifact-update" }[kind] ?? kind);
  if (kind === "artifactUpdate") streamed += textIn(value.artifact.parts);
}
const waited = await sent("hello");
const failed = await sent("fail");
const asking = await sent("ask");
const replied = await sent("Rome", asking.id);
const begun = await sent("wait", undefined, { returnImmediately: true });
const canceled = Task.toJSON(await client.cancelTask({ id: begun.id }));
// A task that goes on while the caller does something else.
const long = await sent("long", undefined, { returnImmediately: true });
await sent("go on");
let ended = long;
while (stateOf(ended) !== "completed") ended = Task.toJSON(await client.getTask({ id: long.id }));
const file = { raw: btoa("hello"), mediaType: "text/plain", filename: "a.txt" };
const copied = (await sent("copy", undefined, undefined, file)).artifacts[0].parts[0];
// Where the updates of a task are sent, if the server sends any.
const pushUrl = process.env.PUSH_URL;
if (pushUrl) {
  await sent("hello", undefined, { taskPushNotificationConfig: { url: pushUrl, token: "a-token" } });
}
const unknown = await client.getTask({ id: "unknown" }).catch((error) => error.name);

console.log(
  JSON.stringify({
    name: (await client.getAgentCard()).name,
    kinds,
    streamed,
    waited: textOf(waited),
    failed: [stateOf(failed), textIn(failed.status.message.parts)],
    asking: [stateOf(asking), textIn(asking.status.message.parts)],
    replied: textOf(replied),
    canceled: stateOf(canceled),
    long: [stateOf(long) !== "completed", textOf(ended)],
    file: [copied.filename, copied.mediaType, atob(copied.raw)],
    unknown: unknown === "TaskNotFoundError" ? -32001 : unknown,
  }),
);
