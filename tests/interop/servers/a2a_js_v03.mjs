// An agent built with the A2A project's JavaScript SDK 0.3: PORT FOLDER.

import { randomUUID } from "node:crypto";
import { DefaultRequestHandler, InMemoryTaskStore } from "a2a-v0.3/server";
import { agentCardHandler, jsonRpcHandler, UserBuilder } from "a2a-v0.3/server/express";
import express from "express";
import { cancel, noteCalls, play, serve, url } from "./script.mjs";

const text = (words) => ({ kind: "text", text: words });

class SdkStage {
  constructor(context, bus) {
    Object.assign(this, { context, bus, ids: { taskId: context.taskId, contextId: context.contextId } });
  }

  say(words) {
    this.bus.publish(this.message(words, { contextId: this.context.contextId }));
    this.bus.finished();
  }

  begin() {
    const { task, userMessage, taskId, contextId } = this.context;
    const status = { state: "working", timestamp: new Date().toISOString() };
    if (task) this.bus.publish({ ...task, status });
    else this.bus.publish({ kind: "task", id: taskId, contextId, status, history: [userMessage], artifacts: [] });
  }

  work(words) {
    this.status("working", words, false);
  }

  give(words, others) {
    const artifact = { artifactId: randomUUID(), name: "echo", parts: [text(words), ...others] };
    this.bus.publish({ kind: "artifact-update", ...this.ids, artifact });
  }

  giveChunk(words, append, lastChunk) {
    const artifact = { artifactId: "story", parts: [text(words)] };
    this.bus.publish({ kind: "artifact-update", ...this.ids, artifact, append, lastChunk });
  }

  complete() {
    this.status("completed");
  }

  fail(words) {
    this.status("failed", words);
  }

  ask(words) {
    this.status("input-required", words);
  }

  cancel() {
    this.status("canceled");
  }

  status(state, words, final = true) {
    const status = { state, timestamp: new Date().toISOString() };
    if (words !== undefined) status.message = this.message(words, this.ids);
    this.bus.publish({ kind: "status-update", ...this.ids, status, final });
    if (final) this.bus.finished();
  }

  message(words, ids) {
    return { kind: "message", role: "agent", messageId: randomUUID(), parts: [text(words)], ...ids };
  }
}

const executor = {
  async execute(context, bus) {
    const { userMessage, task, taskId, contextId } = context;
    const words = userMessage.parts.filter((part) => part.kind === "text").map((part) => part.text);
    const others = userMessage.parts.filter((part) => part.kind !== "text");
    const answers = task?.status.state === "input-required";
    const ids = { taskId, contextId, messageId: userMessage.messageId, answers };
    await play(new SdkStage(context, bus), words.join("\n"), others, ids);
  },
  async cancelTask(taskId) {
    cancel(taskId);
  },
};

const card = {
  name: "Scripted",
  description: "Does what its message says.",
  protocolVersion: "0.3.0",
  version: "1.0.0",
  url: `${url}/a2a`,
  preferredTransport: "JSONRPC",
  capabilities: { streaming: true },
  defaultInputModes: ["text", "data", "file"],
  defaultOutputModes: ["text", "data", "file"],
  skills: [{ id: "script", name: "Script", description: "Plays.", tags: ["script"] }],
};

const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
const app = express();
app.use(noteCalls);
app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: handler }));
app.use("/a2a", jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication }));
serve(app);
