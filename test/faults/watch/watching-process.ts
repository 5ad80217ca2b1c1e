import { KubeConfig } from '@kubernetes/client-node';
import { startProxyCache } from '../../../watcher/proxy-cache.ts';

/**
 * Watches Proxies through this kubeconfig until SIGTERM, and then has nothing left to do: it ends by itself if, and only
 * if, `stop` settled and left neither a timer nor a socket.
 */
const kubeConfig = new KubeConfig();
kubeConfig.loadFromFile(process.argv[2] ?? '');
const cache = startProxyCache({ kubeConfig, relistMillis: 600_000, warn: (message) => console.log(message) });
process.once('SIGTERM', async () => {
  await cache.stop();
  console.log('stopped');
});
console.log('started');
