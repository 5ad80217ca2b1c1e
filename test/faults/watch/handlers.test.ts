import { expect, it } from 'vitest';
import { CLOUD_INIT_LABEL } from '../../../model/proxy.ts';
import { startSecretWatch } from '../../../watcher/secrets.ts';
import { eventually, IMPATIENT, startWatchedFleet } from './watched-fleet.ts';

it('a subscriber that throws keeps nobody from hearing, and the watch goes on', async () => {
  await using fleet = await startWatchedFleet();
  await fleet.create('listed');
  const cache = await fleet.watch({ ...IMPATIENT, silenceMillis: 60_000 });
  cache.subscribe(() => {
    throw new Error('from a handler');
  });
  const later: string[] = [];
  cache.subscribe(({ metadata }, change) => void later.push(`${change} ${metadata.name}`));

  await fleet.create('watched');
  await fleet.edit('watched', { edit: 'first' });
  await fleet.remove('listed');
  await eventually(() => expect(later).toEqual(['changed watched', 'changed watched', 'removed listed']));
  // Of a list as well.
  fleet.gate.cut();
  await eventually(() => expect(fleet.gate.count({ kind: 'watch' })).toBe(2));
  await fleet.edit('watched', { edit: 'second' });
  await fleet.converged(cache);

  const failures = fleet.warnings.filter(({ message }) => message.startsWith('A handler failed on Proxy '));
  expect(failures).toHaveLength(4);
  // But for the one that we cut, no connection was lost.
  expect(fleet.warnings).toHaveLength(5);
});

it('a handler of Secrets that throws still hears of all the others, and the watch goes on', async () => {
  await using fleet = await startWatchedFleet();
  await using stack = new AsyncDisposableStack();
  const { namespace, kubeConfig, core, warn } = fleet;
  const create = (name: string) =>
    core.createNamespacedSecret({
      namespace,
      body: { metadata: { name, labels: { [CLOUD_INIT_LABEL]: 'true' } }, stringData: { text: 'confidential' } },
    });
  await Promise.all(['a', 'b', 'c'].map(create));
  await core.createNamespacedSecret({ namespace, body: { metadata: { name: 'unlabelled' } } });
  const heard: string[] = [];
  const watch = startSecretWatch({
    ...IMPATIENT,
    silenceMillis: 60_000,
    kubeConfig,
    namespace,
    warn,
    label: CLOUD_INIT_LABEL,
    onChange(_, name, secret) {
      heard.push(`${name} ${secret ? 'there' : 'gone'}`);
      throw new Error('from a handler');
    },
  });
  stack.defer(() => watch.stop());
  await eventually(() => expect(heard).toEqual(['a there', 'b there', 'c there']));
  await eventually(() => expect(fleet.gate.count({ kind: 'watch', resource: 'secrets' })).toBe(1));
  await create('d');
  await core.deleteNamespacedSecret({ namespace, name: 'a' });
  await eventually(() => expect(heard.slice(3)).toEqual(['d there', 'a gone']));
  // Its own failures, and none of the watch.
  expect(fleet.warnings.map(({ message }) => message)).toEqual(
    heard.map((line) => `A handler failed on Secret ${namespace}/${line[0]}`),
  );

  // Missed: a rotation and a deletion.
  fleet.gate.answer({}, 500);
  fleet.gate.cut();
  await core.patchNamespacedSecret({ namespace, name: 'b', body: [{ op: 'add', path: '/data/more', value: 'bQ==' }] });
  await core.deleteNamespacedSecret({ namespace, name: 'c' });
  await fleet.gate.pass();
  await eventually(() => expect(heard.slice(5).sort()).toEqual(['b there', 'c gone']));
  expect(JSON.stringify(fleet.warnings)).not.toContain('confidential');
});
