const LIMIT = 300;

/** A reason, and what a kubelet, scheduler or runtime says to it. */
export const said = (reason: string, message: string | undefined): string =>
  message ? `${reason}: ${short(message)}` : reason;

/** On one line, and if it is long, without its middle: wrapped errors begin with what was tried, and end with why not. */
export function short(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > LIMIT ? `${line.slice(0, LIMIT / 2)} … ${line.slice(-LIMIT / 2)}` : line;
}
