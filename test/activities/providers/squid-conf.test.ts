import { once } from 'node:events';
import { createServer, get, type Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import {
  INTERNAL_NETWORKS,
  PROBE_PATH,
  type SquidAccess,
  type SquidConfOptions,
  squidAccess,
  squidConf,
} from '../../../activities/providers/squid-conf.ts';
import { startDnsServer } from './dns-server.ts';
import { ask, type RunningSquid, startSquid } from './running-squid.ts';

const access = z.strictObject(squidAccess);
const asRoot = process.getuid?.() === 0;

/** All on loopback addresses of this test's own: the one that is allowed as a target, and others. */
const net = `127.${100 + (process.pid % 100)}.${process.pid % 250}`;
const SQUID = `${net}.1`;
const SECOND_SQUID = `${net}.2`;
const PROBED_SQUID = `${net}.3`;
const ALLOWED = `${net}.10`;
const INTERNAL = `${net}.20`;
const DNS = `${net}.53`;
const STRANGER = `${net}.99`;

describe('the options', () => {
  test('have safe defaults, but none for who may be a client', () => {
    expect(access.parse({ clients: ['10.0.0.0/8'] })).toEqual({
      clients: ['10.0.0.0/8'],
      allowedNetworks: [],
      httpPorts: [80],
      connectPorts: [443],
    });
    expect(access.safeParse({}).success).toBe(false);
    expect(access.safeParse({ clients: [] }).success).toBe(false);
  });

  test.each([
    [{ clients: ['10.0.0.0 evil'] }, 'neither an IP address nor a network'],
    [{ clients: ['10.0.0.0/8\nhttp_access allow all'] }, '0 to 32'],
    [{ allowedNetworks: ['169.254.0.1/16'] }, 'is 169.254.0.0/16 meant?'],
    [{ httpPorts: [70000] }, '65535'],
    [{ dnsServers: ['dns.example'] }, 'is an IP address'],
  ])('%j is refused', (mistake, message) => {
    const { error } = access.safeParse({ clients: ['10.0.0.0/8'], ...mistake });
    expect(error?.issues.map((issue) => issue.message).join()).toContain(message);
  });
});

describe('the text', () => {
  const conf = (more: Partial<SquidConfOptions> = {}) =>
    squidConf({ ...access.parse({ clients: ['10.0.0.0/8'] }), port: 3128, ...more });

  test('denies every internal network when none is allowed, and allows clients last', () => {
    for (const network of INTERNAL_NETWORKS) expect(conf()).toContain(`acl internal dst ${network}\n`);
    const rules = conf().match(/^http_access .*$/gm) ?? [];
    expect(rules.findIndex((rule) => rule.includes('allow'))).toBe(rules.length - 2);
    expect(rules.at(-1)).toBe('http_access deny all');
  });

  test('answers no probes unless told to', () => {
    expect(conf({ answersProbes: true })).toContain('http_access allow GET probe\n');
    expect(conf()).not.toContain('probe');
  });

  test('cuts what is allowed out of what is denied', () => {
    const allowed = conf({ allowedNetworks: ['10.0.0.0/8', '192.168.128.0/17'] });
    expect(allowed).not.toContain('acl internal dst 10.');
    expect(allowed).toContain('acl internal dst 192.168.0.0/17\n');
    expect(allowed).not.toContain('acl internal dst 192.168.128');
  });

  test('denies nothing internal when everything is allowed, and still sends over IPv4 alone', () => {
    const open = conf({ allowedNetworks: ['0.0.0.0/0', '::/0'], clients: ['0.0.0.0/0'] });
    expect(open).not.toContain('internal');
    expect(open).toContain('acl clients src ipv4\n');
    expect(open.match(/^tcp_outgoing_address .*$/gm)).toEqual([
      'tcp_outgoing_address 0.0.0.0 resolved',
      'tcp_outgoing_address 240.0.0.1',
      'tcp_outgoing_address 100::1',
    ]);
  });
});

describe('a Squid that runs with it', () => {
  let squid: RunningSquid;
  let options: SquidAccess;
  let dns: { close(): void } | undefined;
  const targets: Server[] = [];
  let lastHeaders: Record<string, unknown> = {};
  let lastFrom: string | undefined;
  let httpPort: number;
  let tlsPort: number;

  const confOf = (address: string): string =>
    squidConf({ ...options, port: 3128, listenAddress: address, outgoingAddress: address });

  /** Listens on the allowed and on the internal address, so that only a denial keeps a request from arriving. */
  async function listen(port: number, address: string): Promise<number> {
    const server = createServer((request, response) => {
      lastHeaders = request.headers;
      lastFrom = request.socket.remoteAddress;
      response.end('arrived');
    }).listen(port, address);
    targets.push(server);
    await once(server, 'listening');
    const bound = server.address();
    return typeof bound === 'object' && bound ? bound.port : 0;
  }

  beforeAll(async () => {
    httpPort = await listen(0, ALLOWED);
    tlsPort = await listen(0, ALLOWED);
    await listen(httpPort, INTERNAL);
    await listen(tlsPort, INTERNAL);
    if (asRoot) {
      dns = await startDnsServer(DNS, (name) => {
        const v6 = '260647000000000000000000000000ff';
        return {
          'both.test': { A: [ALLOWED], AAAA: [v6] },
          'six.test': { AAAA: [v6] },
          'four.test': { A: [ALLOWED] },
          'inside.test': { A: [INTERNAL] },
          'mixed.test': { A: [ALLOWED, INTERNAL] },
          'mapped.test': { A: [ALLOWED], AAAA: ['00000000000000000000ffff7f000001'] },
        }[name];
      });
    }
    options = access.parse({
      clients: ['127.0.0.1'],
      allowedNetworks: [ALLOWED],
      httpPorts: [80, httpPort],
      connectPorts: [443, tlsPort],
      ...(asRoot ? { dnsServers: [DNS] } : {}),
    });
    squid = await startSquid(confOf(SQUID), SQUID);
  });

  afterAll(async () => {
    dns?.close();
    for (const server of targets) server.close();
    await squid.stop();
  });

  test('reads its configuration without a complaint', () => {
    const complaints = squid
      .log()
      .split('\n')
      .filter((line) => /WARNING|ERROR|FATAL/.test(line));
    // Debian's Squid has dropped root by the time it opens its log, and falls back to the stderr that it has.
    expect(complaints.filter((line) => !line.includes('Cannot write log file: /dev/stderr'))).toEqual([]);
  });

  test('serves http and CONNECT to what is allowed, from its own address', async () => {
    expect(await ask(SQUID, `GET http://${ALLOWED}:${httpPort}/`)).toMatchObject({
      status: 200,
      body: expect.stringContaining('arrived'),
    });
    expect(lastFrom).toBe(SQUID);
    expect((await ask(SQUID, `CONNECT ${ALLOWED}:${tlsPort}`)).status).toBe(200);
  });

  test('tells the target nothing of the client, and the client nothing of the host', async () => {
    const { body } = await ask(SQUID, `GET http://${ALLOWED}:${httpPort}/`);
    expect(Object.keys(lastHeaders).filter((name) => /^(via|x-forwarded-for|forwarded|x-cache.*)$/.test(name))).toEqual(
      [],
    );
    expect(body).not.toMatch(/^(Via|X-Cache)/im);
  });

  /** Each is denied by exactly one rule: the port, the method or the address alone is wrong. */
  const denials: [what: string, line: () => string][] = [
    ['the cloud metadata address', () => 'GET http://169.254.169.254/latest/meta-data/'],
    ['CONNECT to the cloud metadata address', () => 'CONNECT 169.254.169.254:443'],
    ['CONNECT to port 22', () => `CONNECT ${ALLOWED}:22`],
    ['CONNECT to the http port', () => `CONNECT ${ALLOWED}:${httpPort}`],
    ['http to port 8081', () => `GET http://${ALLOWED}:8081/`],
    ['http to the CONNECT port', () => `GET http://${ALLOWED}:${tlsPort}/`],
    ['another loopback address', () => `GET http://${INTERNAL}:${httpPort}/`],
    ['CONNECT to another loopback address', () => `CONNECT ${INTERNAL}:${tlsPort}`],
    ['an IPv4-mapped loopback address', () => `GET http://[::ffff:127.0.0.1]:${httpPort}/`],
    ['an IPv4-mapped one in hex', () => `CONNECT [::ffff:7f00:1]:${tlsPort}`],
    ['an IPv4-compatible loopback address', () => `GET http://[::127.0.0.1]:${httpPort}/`],
    ['loopback behind NAT64', () => `GET http://[64:ff9b::7f00:1]:${httpPort}/`],
    ['loopback in one number', () => `GET http://2130706433:${httpPort}/`],
    ['loopback in short', () => `GET http://127.1:${httpPort}/`],
    ['loopback in octal and hex', () => `GET http://0177.0x0.0.1:${httpPort}/`],
    ['the unspecified address', () => `GET http://0.0.0.0:${httpPort}/`],
    ['the unspecified address in short', () => `CONNECT 0:${tlsPort}`],
    ['IPv6 loopback', () => `GET http://[::1]:${httpPort}/`],
    ['IPv6 unspecified', () => `CONNECT [::]:${tlsPort}`],
    ['IPv6 link-local', () => `GET http://[fe80::1]:${httpPort}/`],
    ['IPv6 unique local', () => `GET http://[fd00::1]:${httpPort}/`],
    ['10/8', () => 'GET http://10.0.0.1/'],
    ['172.16/12', () => 'GET http://172.31.255.255/'],
    ['192.168/16', () => 'CONNECT 192.168.0.1:443'],
    ['carrier-grade NAT', () => 'GET http://100.127.0.1/'],
    ['multicast', () => 'GET http://224.0.0.1/'],
    ['reserved addresses', () => 'GET http://250.0.0.1/'],
    ['a name from the hosts file that is loopback', () => 'GET http://localhost/'],
    ['ftp', () => `GET ftp://${ALLOWED}:${httpPort}/`],
    ['https without CONNECT', () => `GET https://${ALLOWED}:${httpPort}/`],
    ['the cache manager', () => `GET cache_object://${SQUID}/info`],
    ['the cache manager by path', () => 'GET /squid-internal-mgr/info'],
    ['the cache manager by URL', () => `GET http://egress-proxy:${httpPort}/squid-internal-mgr/menu`],
  ];

  test.each(denials)('denies %s', async (_what, line) => {
    expect((await ask(SQUID, line())).status).toBe(403);
  });

  test('denies clients from another network', async () => {
    expect((await ask(SQUID, `GET http://${ALLOWED}:${httpPort}/`, STRANGER)).status).toBe(403);
    expect((await ask(SQUID, `CONNECT ${ALLOWED}:${tlsPort}`, STRANGER)).status).toBe(403);
  });

  describe.runIf(asRoot)('with names', () => {
    test.each([
      ['a name with an IPv4 address', 'four.test', 200],
      ['a name with both, by its IPv4 address', 'both.test', 200],
      ['an IPv6-only name not at all', 'six.test', 503],
      ['a name that is internal not', 'inside.test', 403],
      ['a name with an allowed and an internal address not', 'mixed.test', 403],
      ['a name with an IPv4-mapped internal address not', 'mapped.test', 403],
    ])('serves %s', async (_what, name, status) => {
      const started = performance.now();
      expect((await ask(SQUID, `GET http://${name}:${httpPort}/`)).status).toBe(status);
      expect((await ask(SQUID, `CONNECT ${name}:${tlsPort}`)).status).toBe(status);
      expect(performance.now() - started).toBeLessThan(1_000);
    });

    test('does not connect to an internal address that a name gets after the first look', async () => {
      // The first look is taken out: what it sees of a name that changes is no longer true when Squid connects.
      const unguarded = confOf(SECOND_SQUID).replace('http_access deny internal\n', '');
      const second = await startSquid(unguarded, SECOND_SQUID);
      onTestFinished(second.stop);
      const to = (name: string) => ask(SECOND_SQUID, `GET http://${name}:${httpPort}/`);
      expect((await to('inside.test')).status).toBe(503);
      expect((await to('mixed.test')).status).toBe(503);
      expect((await to('inside.test')).status).toBe(503);
      expect((await to(INTERNAL)).status).toBe(503);
      expect((await to(ALLOWED)).status).toBe(200);
    });
  });

  describe('that answers probes', () => {
    const probedConf = (port = 3128) =>
      squidConf({ ...options, port, listenAddress: PROBED_SQUID, outgoingAddress: PROBED_SQUID, answersProbes: true });

    /** As a kubelet does, which is no client: by address and port, also in the header `Host`. */
    const probe = (port = 3128): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        get({ host: PROBED_SQUID, port, path: PROBE_PATH, localAddress: STRANGER }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode));
        }).on('error', reject);
      });

    const elsewhere = () => `${ALLOWED}:${httpPort}${PROBE_PATH}`;
    /** Requests of strangers that are much like a probe. */
    const others: [what: string, line: () => string][] = [
      ['another of its icons', () => 'GET /squid-internal-static/icons/silk/computer.png'],
      ['a path that begins so', () => `GET ${PROBE_PATH}/x`],
      ['a path that ends so', () => `GET http://egress-proxy:3128/x${PROBE_PATH}`],
      ['a query', () => `GET ${PROBE_PATH}?x`],
      ['another method', () => `POST ${PROBE_PATH}`],
      ['CONNECT to itself', () => 'CONNECT egress-proxy:3128'],
      ['CONNECT to what is allowed for clients', () => `CONNECT ${ALLOWED}:${tlsPort}`],
      ['a target that is allowed for clients', () => `GET http://${ALLOWED}:${httpPort}/`],
      ['the cache manager', () => 'GET /squid-internal-mgr/info'],
    ];

    test('answers them to strangers, and opens nothing else to them', async () => {
      const probed = await startSquid(probedConf(), PROBED_SQUID);
      onTestFinished(probed.stop);
      expect(await probe()).toBe(200);
      const statuses = others.map(async ([what, line]) => [what, (await ask(PROBED_SQUID, line(), STRANGER)).status]);
      expect(await Promise.all(statuses)).toEqual(others.map(([what]) => [what, 403]));
    });

    test.each(['on', 'off'])('forwards none to another host, with global_internal_static %s', async (set) => {
      const probed = await startSquid(`${probedConf()}global_internal_static ${set}\n`, PROBED_SQUID);
      onTestFinished(probed.stop);
      lastFrom = undefined;
      for (const scheme of ['http', 'https', 'ftp']) {
        const { body } = await ask(PROBED_SQUID, `GET ${scheme}://${elsewhere()}`, STRANGER);
        expect(body).not.toContain('arrived');
      }
      expect(lastFrom).toBeUndefined();
      expect(await probe()).toBe(200);
    });

    test.runIf(asRoot)("answers them on http's own port", async () => {
      const both = `${probedConf(80)}http_port ${PROBED_SQUID}:3128\n`;
      const probed = await startSquid(both, PROBED_SQUID);
      onTestFinished(probed.stop);
      expect(await probe(80)).toBe(200);
    });
  });

  test('refuses an IPv6 literal at once', async () => {
    expect((await ask(SQUID, `GET http://[2606:4700::1]:${httpPort}/`)).status).toBe(503);
  });
});
