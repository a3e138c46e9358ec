// The same agent in JSON-RPC 2.0.
//
//     request   {"jsonrpc": "2.0", "id": …, "method": "message/send", "params": {"message": {"role": "user",
//                   "messageId": "…", "parts": [{"kind": "text", "text": "…"}], "metadata": {…}}}}
//     answer    {"jsonrpc": "2.0", "id": …, "result": {"status": {"state": "completed"},
//                   "artifacts": […], "history": […]}}
//               {"jsonrpc": "2.0", "id": …, "error": {"code": …, "message": "…"}}
//
// The first part of the message is the input.

import express from 'express';
import { processTask } from './processing.js';
import { serve } from './serving.js';

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;

const app = express();

class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

app.post('/agent', express.raw({ type: 'application/json', limit: '1mb' }), async (req, res) => {
  if (!req.is('application/json')) {
    return res.status(415).json(failure(null, INVALID_REQUEST, 'Invalid Request: Content-Type must be application/json'));
  }
  let id = null;
  try {
    const call = readJson(req.body);
    id = idOf(call);
    const [part, input] = readMessage(readParams(call));
    const output = await processTask(input);
    res.json({ jsonrpc: '2.0', id, result: completed(part, output) });
  } catch (error) {
    if (error instanceof Refusal) {
      return res.status(400).json(failure(id, error.code, error.message));
    }
    console.error(`Task ${id} has failed:`, error);
    res.status(500).json(failure(id, INTERNAL_ERROR, `Internal error: ${error.message}`));
  }
});

function readJson(body) {
  try {
    // fatal: reject bytes that are not UTF-8 instead of replacing them.
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (error) {
    throw new Refusal(PARSE_ERROR, `Parse error: ${error.message}`);
  }
}

// The id for the response, even if the request is invalid in another way.
function idOf(call) {
  const id = call?.id;
  return typeof id === 'string' || isExact(id) ? id : null;
}

// JavaScript rounds larger numbers, so the response would have another id.
function isExact(number) {
  return Number.isFinite(number) && Math.abs(number) <= Number.MAX_SAFE_INTEGER;
}

function readParams(call) {
  if (!isObject(call)) {
    throw new Refusal(INVALID_REQUEST, 'Invalid Request: the body must be one object');
  }
  if (call.jsonrpc !== '2.0') {
    throw new Refusal(INVALID_REQUEST, 'Invalid Request: jsonrpc must be 2.0');
  }
  if (call.id !== idOf(call)) {
    throw new Refusal(INVALID_REQUEST, 'Invalid Request: id must be a string, a number or null');
  }
  if (typeof call.method !== 'string') {
    throw new Refusal(INVALID_REQUEST, 'Invalid Request: method must be a string');
  }
  if (call.method !== 'message/send') {
    throw new Refusal(METHOD_NOT_FOUND, `Method not found: ${call.method}`);
  }
  return call.params;
}

// The message's first part, and the input of the task.
function readMessage(params) {
  const message = params?.message;
  if (!isObject(message)) {
    throw new Refusal(INVALID_PARAMS, 'Invalid params: params.message must be an object');
  }
  const part = Array.isArray(message.parts) ? message.parts[0] : undefined;
  if (!isObject(part)) {
    throw new Refusal(INVALID_PARAMS, 'Invalid params: params.message.parts must contain an object');
  }
  if (part.kind === 'text' && typeof part.text === 'string') {
    return [part, inputOfText(part.text, message.metadata)];
  }
  if (part.kind === 'data' && isObject(part.data)) {
    return [part, part.data];
  }
  throw new Refusal(INVALID_PARAMS, 'Invalid params: a part must have text, or data that is an object');
}

function inputOfText(text, metadata) {
  // Trunkline sends an input's `text` or `query` as the text, and the whole input as metadata.
  if (isObject(metadata) && ('text' in metadata || 'query' in metadata)) {
    return metadata;
  }
  try {
    const found = JSON.parse(text);
    return isObject(found) ? found : { text };
  } catch {
    return { text };
  }
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function completed(part, output) {
  const answer = { kind: 'text', text: JSON.stringify(output) };
  return {
    status: { state: 'completed' },
    artifacts: [{ parts: [answer] }],
    history: [
      { role: 'user', parts: [part] },
      { role: 'agent', parts: [answer] },
    ],
  };
}

function failure(id, code, message) {
  return { jsonrpc: '2.0', id, error: { code, message } };
}

app.all('/agent', (req, res) => {
  res.status(405).set('Allow', 'POST').json(failure(null, INVALID_REQUEST, 'Invalid Request: use POST'));
});

// Requests that Express rejects: a body that is too large (413) or has an unknown encoding (415).
app.use((error, req, res, next) => {
  res.status(error.status ?? 500).json(failure(null, INVALID_REQUEST, `Invalid Request: ${error.message}`));
});

serve(app);
