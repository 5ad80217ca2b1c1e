// The probe target, as a process of its own, so that a fault in it is nothing but a fault in it.
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    host: { type: 'string', default: '127.80.0.1' },
    'http-port': { type: 'string', default: '18080' },
    'https-port': { type: 'string', default: '18443' },
    cert: { type: 'string', default: '' },
    key: { type: 'string', default: '' },
  },
});

const target = createTarget();
const http = createServer(target);
const https = createTlsServer({ cert: readFileSync(values.cert), key: readFileSync(values.key) }, target);
http.listen(Number(values['http-port']), values.host);
https.listen(Number(values['https-port']), values.host);
process.once('SIGTERM', () => process.exit(0));

/**
 * `/` (and any other path) answers 200 and says who asked; `/status/503` answers that status; `/delay/250` answers
 * after so many milliseconds; `POST /down` makes everything answer 503 until `POST /up`.
 */
function createTarget(): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  let down = false;
  return async function answerProbe(request, response) {
    request.resume();
    const path = new URL(request.url ?? '/', 'http://target').pathname;
    if (request.method === 'POST' && (path === '/down' || path === '/up')) {
      down = path === '/down';
      return send(response, 200, { ok: true, down });
    }
    if (down) return send(response, 503, { ok: false, down });
    const delay = /^\/delay\/(\d{1,6})$/.exec(path)?.[1];
    if (delay) await sleep(Number(delay));
    const status = Number(/^\/status\/([2-5]\d\d)$/.exec(path)?.[1] ?? 200);
    // Squid's side of the connection: the address that the proxy egresses from.
    const client = request.socket.remoteAddress;
    send(response, status, { ok: status < 400, client, method: request.method, url: request.url });
  };
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(status === 204 || status === 304 ? undefined : `${JSON.stringify(body)}\n`);
}
