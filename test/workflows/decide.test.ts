import { describe, expect, it } from 'vitest';
import { type Condition, withCondition } from '../../model/condition.ts';
import { type Instance, type InstanceState, PROVIDER_ERROR_CLASSES } from '../../model/instance.ts';
import type { Failure, Look, ObservedExternal, ObservedManaged, Timing } from '../../model/observation.ts';
import type { Placement, ProxyStatus } from '../../model/proxy.ts';
import { afterCreate, afterDelete, afterStaleCreate, decide, isSaid, needsLook } from '../../workflows/decide.ts';
import { BLANK_MEMORY, type Decision, type Memory, type World } from '../../workflows/decision.ts';
import { afterFailure } from '../../workflows/failures.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const MINUTE = 60_000;
const TIMING: Timing = {
  provisioningPoll: 5_000,
  deletionPoll: 4_000,
  provisioningTimeout: 15 * MINUTE,
  quotaRetry: 5 * MINUTE,
  backoffInitial: 1_000,
  backoffMax: 10_000,
  resync: 360 * MINUTE,
};

const HASH = 'hash-of-the-spec';
const ID = 'host://local/proxy-a';

function condition(status: Condition['status'], reason: string, observedGeneration = 1): Condition[] {
  return withCondition(undefined, 'Provisioned', { status, reason, message: '' }, observedGeneration, NOW - MINUTE);
}

function managed(changes: Partial<ObservedManaged> = {}): ObservedManaged {
  return {
    mode: 'Managed',
    generation: 1,
    deleting: false,
    finalizer: true,
    port: 3128,
    status: {},
    instanceName: 'proxy-a',
    abandon: false,
    placement: {},
    provider: { name: 'local', configured: true, taskQueue: 'q' },
    desired: { hash: HASH },
    ...changes,
  };
}

/** A Proxy whose instance is recorded. */
function withInstance(changes: Partial<ObservedManaged> = {}): ObservedManaged {
  const status = {
    providerID: ID,
    incarnation: 1,
    ip: '127.0.0.5',
    port: 3128,
    conditions: condition('True', 'Created'),
  };
  return managed({ recordedHash: HASH, ...changes, status: { ...status, ...changes.status } });
}

/** One that has been said to be on its way up for so many minutes. */
function comingUp(minutes: number): ObservedManaged {
  const statement = { status: 'False', reason: 'Provisioning', message: '' } as const;
  const conditions = withCondition(undefined, 'Provisioned', statement, 1, NOW - minutes * MINUTE);
  return withInstance({ status: { conditions } });
}

function instance(changes: Partial<Instance> = {}): Instance {
  return {
    name: 'proxy-a',
    providerID: ID,
    uid: 'uid-a',
    state: 'Running',
    ip: '127.0.0.5',
    createdAt: new Date(NOW - MINUTE).toISOString(),
    specHash: HASH,
    ...changes,
  };
}

function world(proxy: ObservedManaged, look?: Look, memory: Partial<Memory> = {}): World<ObservedManaged> {
  return {
    proxy,
    memory: { ...BLANK_MEMORY, ...memory },
    timing: TIMING,
    now: NOW,
    random: 0.999,
    ...(look && { look }),
  };
}

const found = (changes: Partial<Instance> = {}): Look => ({ found: instance(changes) });
const ABSENT: Look = { absent: true };
const failed = (error: Failure['class'], more: Partial<Failure> = {}): Look => ({
  failed: { class: error, message: `the provider says ${error}`, attempt: 1, ...more },
});

/** What a decision comes down to, in one line. */
function gist({ action, report, next }: Decision): string {
  const { provisioned, healthy, hash, providerID, zone, ip } = report ?? {};
  return [
    action ?? '-',
    provisioned ? `${provisioned.status}/${provisioned.reason}` : '-',
    ...(healthy ? [healthy.reason] : []),
    ...(hash !== undefined ? [`hash=${hash}`] : []),
    ...(providerID !== undefined ? [`id=${providerID}`] : []),
    ...(zone ? [`zone=${zone}`] : []),
    ...(ip !== undefined ? [`ip=${ip}`] : []),
    typeof next === 'object' ? `${next.because} ${next.after}` : next,
  ].join(' ');
}

const IDLE = `resync ${TIMING.resync}`;
const GONE_MEMORY = { create: 'none' } as const;

describe('Deleting', () => {
  const deleting = (changes: Partial<ObservedManaged> = {}) => withInstance({ deleting: true, ...changes });
  const never = (changes: Partial<ObservedManaged> = {}) => managed({ deleting: true, ...changes });

  it.each<[string, World<ObservedManaged>, string]>([
    ['without our finalizer: nothing', world(never({ finalizer: false })), '- - finish'],
    [
      'no providerID and no unknown create: the finalizer goes',
      world(never(), undefined, GONE_MEMORY),
      'removeFinalizer - finish',
    ],
    [
      'a refused create made nothing, even for a workflow that is new to it',
      world(never({ status: { conditions: condition('False', 'PermanentError') } })),
      'removeFinalizer - finish',
    ],
    [
      'a create over quota made nothing either',
      world(never({ status: { conditions: condition('False', 'QuotaExceeded') } })),
      'removeFinalizer - finish',
    ],
    [
      'an unknown create, and nothing under its name',
      world(never(), ABSENT, { create: 'unknown' }),
      'removeFinalizer - finish',
    ],
    [
      'an unknown create, and an instance under its name',
      world(never(), found(), { create: 'unknown' }),
      'delete False/Deleting deletion 4000',
    ],
    ['a workflow new to the CR looks by name', world(never(), found()), 'delete False/Deleting deletion 4000'],
    ['NotFound: the finalizer goes', world(deleting(), ABSENT), 'removeFinalizer - finish'],
    ['the instance exists: delete it, look again', world(deleting(), found()), 'delete False/Deleting deletion 4000'],
    ['it may be stopped', world(deleting(), found({ state: 'Stopped' })), 'delete False/Deleting deletion 4000'],
    ['a permanent error keeps retrying', world(deleting(), failed('Permanent')), '- False/Deleting retry 1000'],
    ['so does a passing one', world(deleting(), failed('Transient'), { failures: 2 }), '- False/Deleting retry 3998'],
    ['quota has its own pace', world(deleting(), failed('QuotaExceeded')), '- False/Deleting retry 300000'],
    [
      'a rate limit names its own',
      world(deleting(), failed('RateLimited', { retryAfterMillis: 77 })),
      '- False/Deleting retry 77',
    ],
    [
      'a provider that left the configuration: said, and retried',
      world(deleting({ provider: { name: 'old', configured: false, known: ['local'] } })),
      '- False/Deleting retry 1000',
    ],
    [
      'abandoned by a person: said first',
      world(deleting({ abandon: true, provider: { name: 'old', configured: false, known: [] } })),
      '- False/Abandoned now',
    ],
    [
      'and then let go',
      world(deleting({ abandon: true, status: { conditions: condition('False', 'Abandoned') } })),
      'removeFinalizer - finish',
    ],
    [
      'and let go where there never was an instance',
      world(never({ provider: { name: 'old', configured: false, known: [] } }), undefined, GONE_MEMORY),
      'removeFinalizer - finish',
    ],
  ])('%s', (_, seen, expected) => {
    expect(gist(decide(seen))).toBe(expected);
  });

  it('never latches: a permanent error recorded for this generation is tried again', () => {
    const seen = deleting({ status: { conditions: condition('False', 'PermanentError') } });
    expect(needsLook(world(seen))).toBe(true);
    expect(gist(decide(world(seen, found())))).toBe('delete False/Deleting deletion 4000');
  });

  it('finishes at once where the provider says that nothing is left', () => {
    const decision = decide(world(deleting(), found()));
    expect(afterDelete(decision, 'gone').next).toBe('now');
    expect(afterDelete(decision, 'deleting').next).toEqual({ after: 4_000, because: 'deletion' });
  });

  it('says what to do about a provider that is not configured', () => {
    const { report } = decide(world(deleting({ provider: { name: 'old', configured: false, known: ['local'] } })));
    expect(report?.provisioned?.message).toContain('"old" is not configured (known: local); configure it again');
  });
});

describe('External', () => {
  const external = (changes: Partial<ObservedExternal> = {}): World => ({
    proxy: {
      mode: 'External',
      generation: 1,
      deleting: false,
      finalizer: false,
      port: 8888,
      host: 'proxy.example.net',
      status: {},
      ...changes,
    },
    memory: BLANK_MEMORY,
    timing: TIMING,
    now: NOW,
    random: 0,
  });

  it('is provisioned at its endpoint, without finalizer or provider call', () => {
    expect(gist(decide(external()))).toBe(`- True/ExternalEndpoint NotProbed ip=proxy.example.net ${IDLE}`);
    expect(needsLook(external())).toBe(false);
  });

  it('keeps its health while its endpoint stays', () => {
    const status = { ip: 'proxy.example.net', port: 8888 };
    expect(gist(decide(external({ status })))).toBe(`- True/ExternalEndpoint ip=proxy.example.net ${IDLE}`);
  });

  it('is let go at once when deleted', () => {
    expect(gist(decide(external({ deleting: true })))).toBe('- - finish');
  });
});

describe('Managed', () => {
  const spec = (desired: string) => withInstance({ desired: { hash: desired } });

  it.each<[string, World<ObservedManaged>, string]>([
    ['the finalizer comes first', world(managed({ finalizer: false })), 'addFinalizer - now'],
    [
      'a permanent error recorded for this generation: silence',
      world(managed({ status: { conditions: condition('False', 'PermanentError') } })),
      `- - ${IDLE}`,
    ],
    [
      'until the spec is edited',
      world(managed({ generation: 2, status: { conditions: condition('False', 'PermanentError', 1) } })),
      '- Unknown/Creating now',
    ],
    [
      'or a replacement is asked for',
      world(managed({ status: { conditions: condition('False', 'PermanentError') } }), undefined, { replace: true }),
      '- Unknown/Creating now',
    ],
    [
      'a provider that is not configured is a permanent error',
      world(managed({ provider: { name: 'nope', configured: false, known: ['local'] } }), undefined, GONE_MEMORY),
      '- False/PermanentError the provider to be configured 1000',
    ],
    [
      'and is over as soon as it is configured again, without an edit',
      world(withInstance({ status: { conditions: condition('False', 'PermanentError') } }), found(), {
        unconfigured: true,
      }),
      `- True/Created ip=127.0.0.5 ${IDLE}`,
    ],
    [
      'cloud-init that can not be resolved',
      world(managed({ desired: { cloudInitError: 'No Secret' } }), undefined, GONE_MEMORY),
      '- False/CloudInitError cloud-init 1000',
    ],
    [
      'and takes nothing from an instance that runs',
      world(withInstance({ desired: { cloudInitError: 'No Secret' } }), undefined, { failures: 1 }),
      '- True/CloudInitError cloud-init 1999',
    ],
    [
      'a refusal is taken back before the next try, which may succeed unseen',
      world(managed({ status: { conditions: condition('False', 'QuotaExceeded') } })),
      '- Unknown/Creating now',
    ],
    ['no providerID: create', world(managed()), 'create - now'],
    [
      'no providerID after a lost answer: create again',
      world(managed(), undefined, { create: 'unknown' }),
      'create - now',
    ],
    [
      'hash annotation missing: adopt what is there, with the hash it was made from',
      world(withoutRecordedHash(), found({ specHash: 'older' })),
      '- - hash=older now',
    ],
    ['hash annotation missing and nothing there', world(withoutRecordedHash(), ABSENT), `- - hash=${HASH} now`],
    ['hash differs: replace', world(spec('new'), found()), 'delete False/Replacing NotProbed ip=null deletion 4000'],
    [
      'hash differs and it is gone: the new hash is recorded, the next pass creates',
      world(spec('new'), ABSENT),
      '- False/Creating NotProbed hash=new id=null ip=null now',
    ],
    [
      'a replacement was asked for',
      world(withInstance(), found(), { replace: true }),
      'delete False/Replacing NotProbed ip=null deletion 4000',
    ],
    [
      'hash equal, gone: clear and make anew',
      world(withInstance(), ABSENT),
      `- False/Creating NotProbed hash=${HASH} id=null ip=null now`,
    ],
    [
      'on its way up: wait',
      world(withInstance(), found({ state: 'Provisioning' })),
      '- False/Provisioning provisioning 5000',
    ],
    [
      'too long on its way up: delete it',
      world(comingUp(16), found({ state: 'Provisioning', createdAt: new Date(NOW - 16 * MINUTE).toISOString() })),
      'delete False/ProvisioningTimeout NotProbed ip=null deletion 4000',
    ],
    [
      'a second time in a row: with backoff',
      world(comingUp(16), found({ state: 'Provisioning', createdAt: new Date(NOW - 16 * MINUTE).toISOString() }), {
        losses: 1,
      }),
      'delete False/ProvisioningTimeout NotProbed ip=null backoff after repeated losses 1999',
    ],
    [
      'an old instance that ran until now has its time from now',
      world(withInstance(), found({ state: 'Provisioning', createdAt: new Date(NOW - 600 * MINUTE).toISOString() })),
      '- False/Provisioning provisioning 5000',
    ],
    [
      'and from when it was first seen not to run',
      world(comingUp(14), found({ state: 'Provisioning', createdAt: new Date(NOW - 600 * MINUTE).toISOString() })),
      '- False/Provisioning provisioning 5000',
    ],
    [
      'without its cloud-init, an instance that is gone is said to be',
      world(withInstance({ desired: { cloudInitError: 'No Secret' } }), ABSENT),
      '- False/CloudInitError NotProbed id=null ip=null cloud-init 1000',
    ],
    [
      'and one that stopped is deleted',
      world(withInstance({ desired: { cloudInitError: 'No Secret' } }), found({ state: 'Stopped' })),
      'delete False/Stopped NotProbed ip=null deletion 4000',
    ],
    ['running', world(withInstance(), found()), `- True/Created ip=127.0.0.5 ${IDLE}`],
    [
      'running at another address: its health starts anew',
      world(withInstance(), found({ ip: '127.0.0.9' })),
      `- True/Created NotProbed ip=127.0.0.9 ${IDLE}`,
    ],
    [
      'stopped: cattle',
      world(withInstance(), found({ state: 'Stopped' })),
      'delete False/Stopped NotProbed ip=null deletion 4000',
    ],
    [
      'stopped again soon after: with backoff',
      world(withInstance(), found({ state: 'Stopped' }), { losses: 2 }),
      'delete False/Stopped NotProbed ip=null backoff after repeated losses 3998',
    ],
    [
      'stopped after a long life: at once again',
      world(withInstance(), found({ state: 'Stopped', createdAt: new Date(NOW - 60 * MINUTE).toISOString() }), {
        losses: 5,
      }),
      'delete False/Stopped NotProbed ip=null deletion 4000',
    ],
  ])('%s', (_, seen, expected) => {
    expect(gist(decide(seen))).toBe(expected);
  });

  function withoutRecordedHash(): ObservedManaged {
    const { recordedHash: _, ...proxy } = withInstance();
    return proxy;
  }

  it('counts a loss once, however often its deletion is looked at', () => {
    const proxy = withInstance({ status: { conditions: condition('False', 'Stopped') } });
    const { memory, next } = decide(world(proxy, found({ state: 'Stopped' }), { losses: 1, lost: 1 }));
    expect(memory.losses).toBe(1);
    expect(next).toEqual({ after: 4_000, because: 'deletion' });
  });

  it('needs no look where a provider call could change nothing', () => {
    const latched = managed({ status: { providerID: ID, conditions: condition('False', 'PermanentError') } });
    const cases: [ObservedManaged, boolean][] = [
      [withInstance(), true],
      [managed(), false],
      [latched, false],
      [withInstance({ finalizer: false }), false],
      [withInstance({ desired: { cloudInitError: '' } }), true],
      [withInstance({ provider: { name: 'x', configured: false, known: [] } }), false],
      [managed({ deleting: true }), true],
    ];
    for (const [proxy, expected] of cases) expect(needsLook(world(proxy))).toBe(expected);
  });
});

describe('Managed, with a provider that has zones', () => {
  const zonal = (status: ProxyStatus, placement: Placement, defaultZone?: string) =>
    managed({
      status,
      placement,
      provider: { name: 'gcp', configured: true, taskQueue: 'q', zonal: defaultZone ? { defaultZone } : {} },
    });
  const stockout = (attempt = 1): Failure => ({
    class: 'QuotaExceeded',
    message: 'none left',
    zoneExhausted: true,
    attempt,
  });
  /** A status of this very generation, so that its zone still counts. */
  const at = (zone: string) => ({ zone, observedGeneration: 1 });
  const refused = { ...at('b'), conditions: condition('False', 'QuotaExceeded') };
  const made = { ...at('b'), providerID: ID, incarnation: 1, conditions: condition('False', 'Provisioning') };
  const recorded = (status: ProxyStatus, placement: Placement) => ({
    ...zonal(status, placement),
    recordedHash: HASH,
  });
  const ABC = { zone: 'a', zones: ['b', 'c'] };

  it.each<[string, World<ObservedManaged>, string]>([
    ['the zone is recorded first', world(zonal({}, ABC), undefined, GONE_MEMORY), '- - zone=a now'],
    ['then the instance is made', world(zonal({ zone: 'a' }, ABC), undefined, GONE_MEMORY), 'create - now'],
    [
      'an edit while one is fallen back on: the preferred zone first',
      world({ ...zonal(at('b'), ABC), generation: 2 }, undefined, GONE_MEMORY),
      '- - zone=a now',
    ],
    [
      'the zone of the configuration, where the placement names none',
      world(zonal({}, { zones: ['b'] }, 'd'), undefined, GONE_MEMORY),
      '- - zone=d now',
    ],
    [
      'the first to fall back on, where nobody names one',
      world(zonal({}, { zones: ['b'] }), undefined, GONE_MEMORY),
      '- - zone=b now',
    ],
    ['no zone at all: the provider says so', world(zonal({}, {}), undefined, GONE_MEMORY), 'create - now'],
    [
      'an edit that takes the zone off the list, before anything was made',
      world(zonal({ zone: 'z' }, ABC), undefined, GONE_MEMORY),
      '- - zone=a now',
    ],
    [
      'after a lost answer, a zone where nothing is can be left',
      world(zonal({ zone: 'z' }, ABC), ABSENT, { create: 'unknown' }),
      '- - zone=a now',
    ],
    ['or tried again', world(zonal(at('b'), ABC), ABSENT, { create: 'unknown' }), 'create - now'],
    [
      'what a lost create has made is recorded as it is, also where it is wanted no more',
      world(zonal({ zone: 'z' }, ABC), found({ specHash: 'older' }), { create: 'unknown' }),
      `- - NotProbed hash=older id=${ID} now`,
    ],
    [
      'also while its cloud-init can not be resolved',
      world({ ...zonal({ zone: 'a' }, ABC), desired: { cloudInitError: 'No Secret' } }, found(), { create: 'unknown' }),
      `- False/CloudInitError NotProbed hash=${HASH} id=${ID} cloud-init 1000`,
    ],
    [
      'a stockout: on to the next zone, at once',
      world(recorded(made, ABC), failed('QuotaExceeded', { zoneExhausted: true })),
      '- False/QuotaExceeded NotProbed id=null zone=c ip=null now',
    ],
    [
      'after the last one: a wait, for as long as a look finds that failure',
      world(recorded({ ...made, zone: 'c' }, ABC), failed('QuotaExceeded', { zoneExhausted: true })),
      `- False/QuotaExceeded quota ${TIMING.quotaRetry}`,
    ],
    [
      'a stockout of the only zone: a wait',
      world(recorded({ ...made, zone: 'a' }, { zone: 'a' }), failed('QuotaExceeded', { zoneExhausted: true })),
      `- False/QuotaExceeded quota ${TIMING.quotaRetry}`,
    ],
    [
      'after an edit: from the first one again, at once',
      world({ ...recorded(made, ABC), generation: 2 }, failed('QuotaExceeded', { zoneExhausted: true })),
      '- False/QuotaExceeded NotProbed id=null zone=a ip=null now',
    ],
    [
      'of a zone that an edit has taken off the list: likewise',
      world(recorded({ ...made, zone: 'z' }, ABC), failed('QuotaExceeded', { zoneExhausted: true })),
      '- False/QuotaExceeded NotProbed id=null zone=a ip=null now',
    ],
    [
      'a quota is the same everywhere: a wait',
      world(recorded(made, ABC), failed('QuotaExceeded')),
      `- False/QuotaExceeded quota ${TIMING.quotaRetry}`,
    ],
    [
      'a refusal is taken back before the next zone is tried',
      world(zonal(refused, ABC), undefined, GONE_MEMORY),
      '- Unknown/Creating now',
    ],
    [
      'an instance that is gone is made anew in the preferred zone',
      world(recorded(made, ABC), ABSENT),
      `- False/Creating NotProbed hash=${HASH} id=null zone=a ip=null now`,
    ],
  ])('%s', (_, seen, expected) => {
    expect(gist(decide(seen))).toBe(expected);
  });

  it('a create that is refused for want of machines goes on elsewhere, unless an earlier one may have made some', () => {
    const seen = world(zonal(at('a'), ABC), undefined, GONE_MEMORY);
    expect(gist(afterFailure(seen, stockout(), 'create'))).toBe(
      '- False/QuotaExceeded NotProbed id=null zone=b ip=null now',
    );
    expect(gist(afterFailure(seen, stockout(2), 'create'))).toBe('- Unknown/QuotaExceeded quota 1000');
    const last = world(zonal(at('c'), ABC), undefined, GONE_MEMORY);
    expect(gist(afterFailure(last, stockout(), 'create'))).toBe(
      `- False/QuotaExceeded zone=a quota ${TIMING.quotaRetry}`,
    );
    expect(gist(afterFailure(last, stockout(), 'delete'))).toBe(`- False/QuotaExceeded quota ${TIMING.quotaRetry}`);
  });

  it('goes on elsewhere when a zone to fall back on can not make it at all, but not when the preferred one can not', () => {
    const permanent: Failure = { class: 'Permanent', message: 'no such machine type', attempt: 1 };
    const fallback = world(zonal(at('b'), ABC), undefined, GONE_MEMORY);
    expect(gist(afterFailure(fallback, permanent, 'create'))).toContain('zone=c ip=null now');
    const preferred = world(zonal(at('a'), ABC), undefined, GONE_MEMORY);
    expect(gist(afterFailure(preferred, permanent, 'create'))).toContain('False/PermanentError');
    expect(gist(decide(world(recorded(made, ABC), failed('Permanent'))))).toContain('False/PermanentError');
  });

  it('looks for what a lost create may have made before it makes another one, and not otherwise', () => {
    expect(needsLook(world(zonal({ zone: 'a' }, ABC), undefined, { create: 'unknown' }))).toBe(true);
    expect(needsLook(world(zonal({ zone: 'a' }, ABC)))).toBe(true);
    expect(needsLook(world(zonal({ zone: 'a' }, ABC), undefined, GONE_MEMORY))).toBe(false);
    expect(needsLook(world(managed(), undefined, { create: 'unknown' }))).toBe(false);
  });

  it('forgets the zone when an edit leaves none, so that the provider can say what is missing', () => {
    const { report, next } = decide(world(zonal({ zone: 'z' }, {}), undefined, GONE_MEMORY));
    expect({ report, next }).toEqual({ report: { generation: 1, zone: null }, next: 'now' });
  });

  it('keeps the zone in the status while there is an instance', () => {
    expect(afterCreate(world(zonal({ zone: 'b' }, ABC)), instance()).report).not.toHaveProperty('zone');
  });
});

describe('what the status says already', () => {
  const said = (proxy: ObservedManaged) => {
    const { report } = decide(world(proxy, found()));
    return isSaid(report ?? { generation: 0 }, proxy);
  };
  const created = { status: 'True', reason: 'Created', message: 'proxy-a is running' } as const;
  const settled = { observedGeneration: 1, conditions: withCondition(undefined, 'Provisioned', created, 1, NOW) };

  it('is not written again', () => {
    expect(said(withInstance({ status: settled }))).toBe(true);
  });

  it.each<[string, ObservedManaged]>([
    ['a new generation', withInstance({ generation: 2, status: settled })],
    ['another port', withInstance({ port: 3333, status: settled })],
    ['an address that is not there yet', withInstance({ status: { ...settled, ip: '127.0.0.99' } })],
    [
      'another reason',
      withInstance({ status: { observedGeneration: 1, conditions: condition('True', 'TransientError') } }),
    ],
  ])('but %s is', (_, proxy) => {
    expect(said(proxy)).toBe(false);
  });
});

describe('after a create', () => {
  it('records id and hash, and reports an instance that runs at once', () => {
    const decision = afterCreate(world(managed()), instance());
    expect(gist(decision)).toBe(`- True/Created NotProbed hash=${HASH} id=${ID} ip=127.0.0.5 ${IDLE}`);
    expect(decision.report?.incarnation).toBe(1);
    expect(decision.memory.create).toBe('none');
  });

  it('waits for one that is on its way up', () => {
    const decision = afterCreate(world(managed()), instance({ state: 'Provisioning' }));
    expect(gist(decision)).toBe(`- False/Provisioning NotProbed hash=${HASH} id=${ID} provisioning 5000`);
  });

  it('an older machine under our name is recorded with its own hash, so that the next pass replaces it', () => {
    const decision = afterCreate(world(managed()), instance({ specHash: 'older' }));
    expect(gist(decision)).toBe(`- - NotProbed hash=older id=${ID} now`);
  });

  it('counts incarnations, and forgets the wish for a replacement', () => {
    const proxy = managed({ status: { incarnation: 3, conditions: condition('False', 'PermanentError') } });
    const { report, memory } = afterCreate(world(proxy, undefined, { replace: true }), instance());
    expect(report?.incarnation).toBe(4);
    expect(report?.provisioned?.reason).toBe('Created');
    expect(memory.replace).toBe(false);
  });
});

describe("an error's class alone decides", () => {
  const failure = (error: Failure['class'], retryAfterMillis?: number): Failure => ({
    class: error,
    message: 'the words of the provider',
    attempt: 1,
    ...(retryAfterMillis !== undefined && { retryAfterMillis }),
  });

  it.each<[Failure, string, Memory['create']]>([
    [failure('QuotaExceeded'), '- False/QuotaExceeded quota 300000', 'none'],
    [failure('Permanent'), `- False/PermanentError an edit of the spec ${TIMING.resync}`, 'none'],
    [failure('RateLimited', 42_000), '- False/RateLimited rate limit 42000', 'none'],
    [failure('RateLimited'), '- False/RateLimited rate limit 1000', 'none'],
    [failure('Transient'), '- Unknown/TransientError retry 1000', 'unknown'],
  ])('create fails with %o', (error, expected, create) => {
    const decision = afterFailure(world(managed(), undefined, { create: 'none' }), error, 'create');
    expect(gist(decision)).toBe(expected);
    expect(decision.memory.create).toBe(create);
    expect(decision.report?.provisioned?.message).toContain('the words of the provider');
  });

  it('a refusal after a lost answer does not make the first create undone', () => {
    const decision = afterFailure(
      world(managed(), undefined, { create: 'unknown' }),
      failure('QuotaExceeded'),
      'create',
    );
    expect(gist(decision)).toBe('- Unknown/QuotaExceeded quota 300000');
    expect(decision.memory.create).toBe('unknown');
  });

  it('nor does a refusal at a later attempt, when the answer to the first was lost', () => {
    const refusal = { ...failure('QuotaExceeded'), attempt: 2 };
    const decision = afterFailure(world(managed(), undefined, { create: 'none' }), refusal, 'create');
    expect(decision.memory.create).toBe('unknown');
  });

  it('nor does an attempt that finds the Proxy changed', () => {
    expect(afterStaleCreate(world(managed(), undefined, { create: 'none' })).memory.create).toBe('unknown');
  });

  it('and the status says so to a workflow that is new to the CR', () => {
    const status = { conditions: condition('Unknown', 'PermanentError') };
    expect(gist(decide(world(managed({ deleting: true, status }), ABSENT)))).toBe('removeFinalizer - finish');
    expect(needsLook(world(managed({ deleting: true, status })))).toBe(true);
  });

  it.each<[Failure['class'], string]>([
    ['QuotaExceeded', '- True/QuotaExceeded quota 300000'],
    ['RateLimited', '- True/RateLimited rate limit 1000'],
    ['Transient', '- True/TransientError retry 1000'],
    ['Permanent', `- False/PermanentError an edit of the spec ${TIMING.resync}`],
  ])('a look at a running instance that fails with %s', (error, expected) => {
    expect(gist(decide(world(withInstance(), failed(error))))).toBe(expected);
  });

  it('backs off exponentially, with jitter, up to the maximum', () => {
    const waits = [0, 1, 2, 3, 4, 50].map((failures) => {
      const { next } = afterFailure(world(managed(), undefined, { failures }), failure('Transient'));
      return (next as { after: number }).after;
    });
    expect(waits).toEqual([1000, 1999, 3998, 7996, 9995, 9995]);
    const { next } = afterFailure({ ...world(managed()), random: 0 }, failure('Transient'));
    expect(next).toEqual({ after: 500, because: 'retry' });
  });

  it('waits longest while the sweeps find the provider unavailable: the one that finds it back nudges', () => {
    const provider = { name: 'local', configured: true, taskQueue: 'q', unavailable: true } as const;
    const { next } = afterFailure(world(managed({ provider })), failure('Transient'));
    expect(next).toEqual({ after: TIMING.backoffMax, because: 'retry' });
  });

  it('starts the backoff again after a pass without failure', () => {
    expect(decide(world(withInstance(), found(), { failures: 4 })).memory.failures).toBe(0);
  });

  it('every state and every class has an answer, deleting or not', () => {
    const states: InstanceState[] = ['Provisioning', 'Running', 'Stopped'];
    const errors = PROVIDER_ERROR_CLASSES.filter((name) => name !== 'NotFound');
    const looks: Look[] = [ABSENT, ...states.map((state) => found({ state })), ...errors.map((error) => failed(error))];
    for (const deleting of [true, false]) {
      for (const look of looks)
        expect(gist(decide(world(withInstance({ deleting }), look)))).not.toMatch(/undefined|NaN/);
    }
  });
});
