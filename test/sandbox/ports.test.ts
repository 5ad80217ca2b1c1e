import { describe, expect, it } from 'vitest';
import { createPortPicker } from '../../deploy/sandbox/ports.ts';

/** A machine on which these ports are taken; it counts what is held. */
function machine(...taken: number[]) {
  const held = new Set(taken);
  const hold = async (port: number) => {
    if (held.has(port)) return undefined;
    held.add(port);
    return { close: async () => void held.delete(port) };
  };
  return { held, picker: createPortPicker(hold) };
}

describe('ports', () => {
  it('are the usual ones where those are free', async () => {
    expect(await machine().picker.near(7233)).toBe(7233);
  });

  it('move to the next free one where they are taken', async () => {
    expect(await machine(7233, 7234).picker.near(7233)).toBe(7235);
  });

  it('are those of the last start while they are free', async () => {
    expect(await machine(7233).picker.near(7233, 7300)).toBe(7300);
    expect(await machine(7300).picker.near(7233, 7300)).toBe(7233);
  });

  it('are never given to two parts', async () => {
    const { picker } = machine();
    expect([await picker.near(8080), await picker.near(8080), await picker.near(8090, 8080)]).toEqual([
      8080, 8081, 8090,
    ]);
  });

  it('are held until the part that gets them starts', async () => {
    const { held, picker } = machine();
    await picker.near(8080);
    await picker.near(8090);
    await picker.release(8080);
    expect([...held]).toEqual([8090]);
    await picker.release();
    expect([...held]).toEqual([]);
  });

  it('of one address are taken all or none', async () => {
    const { held, picker } = machine(18443);
    expect(await picker.all('127.80.0.1', [18080, 18443])).toBe(false);
    expect([...held]).toEqual([18443]);
  });
});
