import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** The records of a name: IPv4 addresses, and IPv6 addresses as 32 hex digits. */
export interface Records {
  A?: string[];
  AAAA?: string[];
  ttlSeconds?: number;
}

const TYPES = { A: 1, AAAA: 28 } as const;

/** A name server (RFC 1035, UDP) on port 53 of a loopback address, the only port that Squid asks. Needs root. */
export async function startDnsServer(
  address: string,
  lookUp: (name: string, type: 'A' | 'AAAA') => Records | undefined,
) {
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length));
      at += 1 + length;
    }
    const end = at + 5;
    const type = query.readUInt16BE(at + 1) === TYPES.AAAA ? 'AAAA' : 'A';
    const records = lookUp(labels.join('.'), type) ?? {};
    const answers = (records[type] ?? []).map((value) => {
      const data = type === 'A' ? Buffer.from(value.split('.').map(Number)) : Buffer.from(value, 'hex');
      const head = Buffer.alloc(12);
      head.writeUInt16BE(0xc00c, 0); // a pointer to the name in the question
      head.writeUInt16BE(TYPES[type], 2);
      head.writeUInt16BE(1, 4);
      head.writeUInt32BE(records.ttlSeconds ?? 60, 6);
      head.writeUInt16BE(data.length, 10);
      return Buffer.concat([head, data]);
    });
    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(0x8180, 2); // an answer, recursion available
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(answers.length, 6);
    header.writeUInt32BE(0, 8);
    socket.send(Buffer.concat([header, query.subarray(12, end), ...answers]), from.port, from.address);
  });
  socket.bind(53, address);
  await once(socket, 'listening');
  return { close: () => socket.close() };
}
