// What the agent does. It is the same before and after: only what stands around it changes.

export async function processTask(input) {
  const query = input.query ?? input.text ?? '';
  if (typeof query !== 'string') {
    throw new TypeError('query must be a string');
  }
  // Your processing logic here.
  return { result: `Processed: ${query}` };
}
