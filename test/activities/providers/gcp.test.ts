import { providerConformance } from './conformance.ts';
import { gcpWorld, PLACEMENT } from './gcp-world.ts';

providerConformance('gcp', async () => {
  const world = await gcpWorld({ settings: { insertMillis: 60, deleteMillis: 60, natMillis: 30 } });
  return { provider: await world.start(), again: () => world.start(), defaults: { placement: PLACEMENT } };
});
