// Serves requests until a signal stops it, and finishes the requests in progress first.

export function serve(app) {
  const host = process.env.HOST ?? '127.0.0.1';
  const port = Number(process.env.PORT ?? 8080);
  const server = app.listen(port, host, (error) => {
    if (error) {
      throw error;
    }
    console.log(`Agent listening at http://${host}:${port}/agent`);
  });
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => server.close());
  }
}
