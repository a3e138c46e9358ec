// An agent built with the A2A project's JavaScript SDK 1.x: PORT FOLDER.

import { randomUUID } from "node:crypto";
import { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent } from "a2a-v1";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "a2a-v1/server";
import { agentCardHandler, jsonRpcHandler, UserBuilder } from "a2a-v1/server/express";
import express from "express";
import { cancel, noteCalls, play, serve, url } from "./script.mjs";

class SdkStage {
  constructor(context, bus) {
    Object.assign(this, { context, bus, ids: { taskId: context.taskId, contextId: context.contextId } });
  }

  say(words) {
    this.bus.publish(AgentEvent.message(Message.fromJSON(this.message(words, {}))));
    this.bus.finished();
  }

  begin() {
    const { task, userMessage, taskId, contextId } = this.context;
    const status = { state: "TASK_STATE_WORKING", timestamp: new Date().toISOString() };
    const fresh = { id: taskId, contextId, status, history: [Message.toJSON(userMessage)], artifacts: [] };
    this.bus.publish(AgentEvent.task(Task.fromJSON(task ? { ...Task.toJSON(task), status } : fresh)));
  }

  work(words) {
    this.status("TASK_STATE_WORKING", words, false);
  }

  give(words, others) {
    const parts = [{ text: words }, ...others];
    this.artifact({ artifact: { artifactId: randomUUID(), name: "echo", parts }, lastChunk: true });
  }

  giveChunk(words, append, lastChunk) {
    this.artifact({ artifact: { artifactId: "story", parts: [{ text: words }] }, append, lastChunk });
  }

  complete() {
    this.status("TASK_STATE_COMPLETED");
  }

  fail(words) {
    this.status("TASK_STATE_FAILED", words);
  }

  ask(words) {
    this.status("TASK_STATE_INPUT_REQUIRED", words);
  }

  cancel() {
    this.status("TASK_STATE_CANCELED");
  }

  artifact(update) {
    this.bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ ...this.ids, ...update })));
  }

  status(state, words, final = true) {
    const status = { state, timestamp: new Date().toISOString() };
    if (words !== undefined) status.message = this.message(words, this.ids);
    this.bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ ...this.ids, status })));
    if (final) this.bus.finished();
  }

  message(words, ids) {
    return { role: "ROLE_AGENT", messageId: randomUUID(), parts: [{ text: words }], ...ids };
  }
}

const executor = {
  async execute(context, bus) {
    const { task, taskId, contextId } = context;
    const message = Message.toJSON(context.userMessage);
    const words = message.parts.filter((part) => part.text !== undefined).map((part) => part.text);
    const others = message.parts.filter((part) => part.text === undefined);
    const answers = task?.status?.state === TaskState.TASK_STATE_INPUT_REQUIRED;
    const ids = { taskId, contextId, messageId: message.messageId, answers };
    await play(new SdkStage(context, bus), words.join("\n"), others, ids);
  },
  async cancelTask(taskId) {
    cancel(taskId);
  },
};

const card = AgentCard.fromJSON({
  name: "Scripted",
  description: "Does what its message says.",
  version: "1.0.0",
  supportedInterfaces: [{ url: `${url}/a2a`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: true },
  defaultInputModes: ["text/plain", "application/json", "application/octet-stream"],
  defaultOutputModes: ["text/plain", "application/json", "application/octet-stream"],
  skills: [{ id: "script", name: "Script", description: "Plays.", tags: ["script"] }],
});

const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
const app = express();
app.use(noteCalls);
app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: handler }));
app.use("/a2a", jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication }));
serve(app);
