import { readFileSync } from 'node:fs';
import { ProxyAgent, request } from 'undici';

/**
 * Asks the sandbox's probe target through a proxy, over a connection of its own.
 * @returns the address that the target saw the request come from
 */
export async function clientSeenThrough(proxyUrl: string, target: string, caFile?: string): Promise<string> {
  const agent = new ProxyAgent({
    uri: proxyUrl,
    proxyTunnel: target.startsWith('https:'),
    ...(caFile && { requestTls: { ca: readFileSync(caFile, 'utf8') } }),
  });
  try {
    const { statusCode, body } = await request(target, { dispatcher: agent });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${target} through ${proxyUrl} answered ${statusCode}: ${text}`);
    return (JSON.parse(text) as { client: string }).client;
  } finally {
    await agent.destroy();
  }
}
