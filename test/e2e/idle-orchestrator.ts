// Answers where the sandbox asks whether its orchestrator is ready, and does nothing else.
import { createServer } from 'node:http';

for (const address of [process.env.LEASE_API_ADDRESS, process.env.METRICS_ADDRESS]) {
  const [host, port] = (address ?? '').split(':');
  createServer((_, response) => response.end()).listen(Number(port), host);
}
process.once('SIGTERM', () => process.exit(0));
