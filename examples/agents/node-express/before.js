// An agent that speaks Simple A2A, with Express.
//
//     request   {"task_id": "…", "input": {"query": "…"}}
//     answer    {"task_id": "…", "status": "success", "output": {"result": "…"}, "error": null}
//               {"task_id": "…", "status": "error", "output": null, "error": "…"}

import express from 'express';
import { processTask } from './processing.js';
import { serve } from './serving.js';

const app = express();

const failure = (taskId, message) => ({ task_id: taskId, status: 'error', output: null, error: message });

app.post('/agent', express.json({ limit: '1mb' }), async (req, res) => {
  if (!req.is('application/json')) {
    return res.status(415).json(failure(null, 'Content-Type must be application/json'));
  }
  const { task_id: taskId, input } = req.body ?? {};
  if (typeof taskId !== 'string') {
    return res.status(400).json(failure(null, 'task_id must be a string'));
  }
  const taskInput = typeof input === 'string' ? { text: input } : input;
  if (typeof taskInput !== 'object' || taskInput === null || Array.isArray(taskInput)) {
    return res.status(400).json(failure(taskId, 'input must be an object or a text'));
  }
  try {
    const output = await processTask(taskInput);
    res.json({ task_id: taskId, status: 'success', output, error: null });
  } catch (error) {
    console.error(`Task ${taskId} has failed:`, error);
    res.status(500).json(failure(taskId, error.message));
  }
});

app.all('/agent', (req, res) => {
  res.status(405).set('Allow', 'POST').json(failure(null, 'Use POST'));
});

// Requests that Express rejects: a body that is not JSON (400) or too large (413).
app.use((error, req, res, next) => {
  res.status(error.status ?? 500).json(failure(null, error.message));
});

serve(app);
