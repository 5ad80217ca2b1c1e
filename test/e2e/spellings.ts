/** Every way in which a secret may turn up in a text: as it is, in base64 at each alignment, in hex. */
export function spellingsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  // Base64 cuts bytes into threes: what it makes of the secret depends on how many stand before it.
  const base64 = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replaceAll('=', '');
    // The first and last characters may hold bits of the neighbours.
    return text.slice(before === 0 ? 0 : before + 1, -1);
  });
  return [
    secret,
    ...base64,
    ...base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_')),
    bytes.toString('hex'),
  ];
}

/** Which of the secrets are in the text, in any spelling. */
export function secretsIn(text: string, secrets: Record<string, string>): string[] {
  return Object.entries(secrets)
    .filter(([, secret]) => spellingsOf(secret).some((spelling) => text.includes(spelling)))
    .map(([name]) => name);
}
