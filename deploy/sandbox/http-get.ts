import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';

export interface Answer {
  status: number;
  body: string;
}

/**
 * One GET on a connection of its own, straight to the address: neither proxy settings of the environment nor the
 * system's certificate authorities play a part. Rejects after 2 s without an answer.
 */
export function httpGet(
  url: string,
  options: { ca?: string; token?: string; signal?: AbortSignal } = {},
): Promise<Answer> {
  const { ca, token, signal } = options;
  const get = url.startsWith('https:') ? getHttps : getHttp;
  return new Promise((resolve, reject) => {
    const request = get(
      url,
      { agent: false, timeout: 2000, signal, ca, headers: token ? { authorization: `Bearer ${token}` } : {} },
      (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          body += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
        response.on('error', reject);
      },
    );
    request.on('timeout', () => request.destroy(new Error(`${url} gave no answer within 2 s`)));
    request.on('error', reject);
  });
}
