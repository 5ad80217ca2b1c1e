import { ProviderError } from '../../model/instance.ts';
import type { Provider } from './contract.ts';

export type ProviderOperation = 'create' | 'get' | 'delete' | 'list';

/** Called once per call; `result` is `ok` or the error's class. */
export type CountProviderCall = (provider: string, operation: ProviderOperation, result: string) => void;

/** The provider, with every call counted. What is not a ProviderError is a bug or a broken connection: Transient. */
export function metered(name: string, provider: Provider, count: CountProviderCall): Provider {
  async function counted<T>(operation: ProviderOperation, call: Promise<T>): Promise<T> {
    try {
      const result = await call;
      count(name, operation, 'ok');
      return result;
    } catch (error) {
      count(name, operation, error instanceof ProviderError ? error.class : 'Transient');
      throw error;
    }
  }

  return {
    create: (request, signal) => counted('create', provider.create(request, signal)),
    get: (ref, signal) => counted('get', provider.get(ref, signal)),
    delete: (ref, signal) => counted('delete', provider.delete(ref, signal)),
    list: (signal) => counted('list', provider.list(signal)),
    close: () => provider.close(),
  };
}
