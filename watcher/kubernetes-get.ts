import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';

/** What the API server answered instead of what was asked for. */
export class KubernetesError extends Error {
  override name = 'KubernetesError';
  /** HTTP status, also of an error that came inside a stream; undefined where the server gave none. */
  readonly code: number | undefined;
  /** How long the server asks us to stay away. */
  readonly retryAfterMillis: number;

  constructor(message: string, code: number | undefined, retryAfterMillis = 0) {
    super(message);
    this.code = code;
    this.retryAfterMillis = retryAfterMillis;
  }
}

export interface Get {
  kubeConfig: KubeConfig;
  path: string;
  query: Record<string, string | number | boolean | undefined>;
  /** Ends the request in any of its phases, and closes its connection. */
  signal: AbortSignal;
  /** The connection is given up when nothing was sent or received on it for so long. */
  silenceMillis?: number;
}

export interface WatchEvent<T> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  object: T;
}

/** One object or one page of a list. */
export async function getJson<T>(get: Get): Promise<T> {
  return parse<T>(await textOf(await open(get)));
}

/**
 * The events of a watch, until the server ends it.
 *
 * @throws KubernetesError also for an error event, after which the server sends nothing more of use
 */
export async function* watchEvents<T>(get: Get): AsyncGenerator<WatchEvent<T>> {
  const response = await open({ ...get, query: { ...get.query, watch: true } });
  for await (const line of linesOf(response)) {
    const event = parse<WatchEvent<T> | { type: 'ERROR'; object: Status }>(line);
    if (event.type === 'ERROR')
      throw new KubernetesError(`The watch failed: ${event.object.message}`, event.object.code);
    yield event;
  }
}

/** As in `metav1.Status`, the body of every failure. */
interface Status {
  message?: string;
  code?: number;
}

/**
 * The client's own `Watch` can't be aborted before it has an answer, and hides what handlers throw; its typed calls have
 * no time limit. So we ask ourselves, with the client's credentials. Each request has a connection of its own, which ends
 * with it.
 */
async function open({ kubeConfig, path, query, signal, silenceMillis }: Get): Promise<IncomingMessage> {
  const cluster = kubeConfig.getCurrentCluster();
  if (!cluster) throw new Error('The kubeconfig names no cluster');
  const url = new URL(cluster.server + path);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, `${value}`);

  const options: RequestOptions = {};
  await kubeConfig.applyToHTTPSOptions(options as Parameters<KubeConfig['applyToHTTPSOptions']>[0]);
  // The client keeps its agents, and with them certificates that may have been renewed since. A proxy needs them.
  if (!cluster.proxyUrl) options.agent = false;
  signal.throwIfAborted();

  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = (url.protocol === 'http:' ? httpRequest : httpsRequest)(url, {
    ...options,
    ...(silenceMillis && { timeout: silenceMillis }),
  });
  let answer: IncomingMessage | undefined;
  // Through the answer, once there is one: whoever reads it learns why it ended.
  const giveUp = (reason: Error) => (answer ?? request).destroy(reason);
  const onAbort = () => giveUp(signal.reason);
  signal.addEventListener('abort', onAbort);
  request.on('close', () => signal.removeEventListener('abort', onAbort));
  request.on('timeout', () => giveUp(new Error(`The API server was silent for ${silenceMillis} ms`)));
  request.on('response', (response) => {
    answer = response;
    resolve(response);
  });
  request.on('error', reject);
  request.end();
  const response = await promise;
  if (response.statusCode === 200) return response;
  throw await refusal(response);
}

async function refusal(response: IncomingMessage): Promise<KubernetesError> {
  const { statusCode, statusMessage, headers } = response;
  const text = await textOf(response);
  let said: string | undefined;
  try {
    said = parse<Status>(text).message;
  } catch {
    // Not from the API server itself, but from something before it.
  }
  const retryAfterSeconds = Number(headers['retry-after']) || 0;
  return new KubernetesError(
    `The API server answered ${statusCode}: ${said ?? statusMessage}`,
    statusCode,
    retryAfterSeconds * 1000,
  );
}

/** Without the parser's own message, which quotes the text: it may be a Secret's. */
function parse<T>(text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new Error('The API server sent what is not JSON');
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  return text;
}

async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of response.setEncoding('utf8')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines.filter(Boolean);
  }
}
