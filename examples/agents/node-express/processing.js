// The work of the agent, which is the same before and after the migration.

export async function processTask(input) {
  const query = input.query ?? input.text ?? '';
  if (typeof query !== 'string') {
    throw new TypeError('query must be a string');
  }
  // Your processing logic here.
  return { result: `Processed: ${query}` };
}
