import { expect, inject } from 'vitest';
import { createScriptedProvider } from '../integration/scripted-provider.ts';
import { startSystem } from '../integration/system.ts';
import { faultTest } from './fault.ts';

/** What the contract allows; far above what the parts need, so that this is about hanging, not about speed. */
const BOUND_MILLIS = 30_000;

faultTest(
  {
    fault: 'shutdown with a provider call that hangs and ignores its signal',
    times: 1,
    checked: 'over within 30 s, made up for by the next worker',
  },
  async () => {
    const servers = { kubeconfig: inject('kubeconfig'), temporalAddress: inject('temporalAddress') };
    const provider = createScriptedProvider();
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    const hanging = {
      ...provider,
      create: () => {
        reach();
        return new Promise<never>(() => {});
      },
    };
    const first = await startSystem(servers, { provider: hanging });
    const { instance } = await first.apply('hung', { provider: 'scripted' });
    await reached;
    const began = Date.now();
    await first.stop();
    expect(Date.now() - began).toBeLessThan(BOUND_MILLIS);

    const second = await startSystem(servers, { provider, watchResyncMillis: 1_000 });
    try {
      await second.ready('hung', 1);
      expect(provider.made(instance)).toBe(1);
      await second.remove('hung');
      await second.gone('hung');
    } finally {
      await second.stop();
    }
  },
);
