import { request } from 'undici';

/** The series of /metrics whose line contains every one of `parts`, with their values. */
export async function seriesWith(url: string, ...parts: string[]): Promise<Map<string, number>> {
  const lines = (await metricsText(url))
    .split('\n')
    .filter((line) => !line.startsWith('#') && parts.every((part) => line.includes(part)));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

export async function metricsText(url: string): Promise<string> {
  const { body } = await request(url);
  return body.text();
}
