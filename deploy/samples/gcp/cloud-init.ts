import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { z } from 'zod';
import { squidAccess, squidConf } from '../../../activities/providers/squid-conf.ts';

/** Who may use the proxies of cloud-init.yaml: a network reserved for documentation, so nobody until it is changed. */
export const SAMPLE_CLIENTS: readonly string[] = ['203.0.113.0/24'];

const CONF = '/etc/squid/egress.conf';

/**
 * Runs Squid in the foreground with our configuration and no other. It is in place before the package is: not even its
 * first start has the package's own configuration.
 */
const UNIT = `[Service]
Type=simple
PIDFile=
ExecStartPre=
ExecStart=
ExecStart=/usr/sbin/squid -N -f ${CONF}
ExecReload=
LimitNOFILE=16384
Restart=always
RestartSec=1
`;

/** Squid's log goes to the journal; this keeps it in memory, and small. */
const JOURNAL = `[Journal]
Storage=volatile
RuntimeMaxUse=16M
`;

/** Cloud-init for Debian 12 and later that makes the VM an egress proxy on the port, and nothing else. */
export function squidCloudInit(clients: readonly string[], port = 3128): string {
  const conf = squidConf({ ...z.object(squidAccess).parse({ clients: [...clients] }), port });
  const files = {
    [CONF]: conf,
    '/etc/systemd/system/squid.service.d/egress.conf': UNIT,
    '/etc/systemd/journald.conf.d/egress.conf': JOURNAL,
  };
  const content = {
    ssh_pwauth: false,
    write_files: Object.entries(files).map(([path, text]) => ({ path, permissions: '0644', content: text })),
    package_update: true,
    packages: ['squid'],
    runcmd: [
      ['systemctl', 'restart', 'systemd-journald'],
      ['systemctl', 'enable', '--now', 'squid'],
    ],
  };
  const head = `# Written by deploy/samples/gcp/cloud-init.ts; for clients of your own:
#   npx node deploy/samples/gcp/cloud-init.ts --client 198.51.100.0/24 --client 192.0.2.7 > cloud-init.yaml
# Squid takes requests from these networks only, and forwards them to the public Internet only: plain http to port 80,
# CONNECT to port 443. The metadata server and private networks are out of its reach. It keeps no cache and no log on disk.
`;
  return `#cloud-config\n${head}${stringify(content, { lineWidth: 0 })}`;
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { client: { type: 'string', multiple: true }, port: { type: 'string' } } });
  writeFileSync(1, squidCloudInit(values.client ?? SAMPLE_CLIENTS, values.port ? Number(values.port) : undefined));
}
