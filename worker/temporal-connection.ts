import { Client, Connection } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { NativeConnection } from '@temporalio/worker';
import { SEARCH_ATTRIBUTES } from '../model/workflow-names.ts';
import { StartError } from './start-error.ts';

export interface Temporal {
  client: Client;
  /** For workers; undefined where this process runs none. */
  native?: NativeConnection;
  namespace: string;
  close(): Promise<void>;
}

/** `temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD` */
const KEYWORD = 2;

/**
 * Connects by the standard TEMPORAL_* settings, checks that the namespace is there, and makes sure that it knows our search
 * attributes: a workflow that sets an unknown one fails for ever.
 */
export async function connectTemporal(addressSetting: string, forWorkers: boolean): Promise<Temporal> {
  const { connectionOptions, namespace = 'default' } = loadClientConnectConfig({});
  const options = { ...connectionOptions, ...(addressSetting && { address: addressSetting }) };
  const address = options.address ?? '127.0.0.1:7233';
  const connection = await Connection.connect({ ...options, address, connectTimeout: '10s' }).catch(
    (error: unknown) => {
      throw new StartError(`Can't reach Temporal at ${address}: ${reasonOf(error)}`);
    },
  );
  try {
    await ensureSearchAttributes(connection, namespace, address);
    const native = forWorkers ? await NativeConnection.connect({ ...options, address }) : undefined;
    return {
      client: new Client({ connection, namespace }),
      ...(native && { native }),
      namespace,
      async close() {
        await native?.close();
        await connection.close();
      },
    };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

async function ensureSearchAttributes(connection: Connection, namespace: string, address: string): Promise<void> {
  const operator = connection.operatorService;
  try {
    const { customAttributes } = await operator.listSearchAttributes({ namespace });
    const missing = SEARCH_ATTRIBUTES.filter((name) => customAttributes[name] === undefined);
    if (missing.length === 0) return;
    await operator.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])),
    });
  } catch (error) {
    const names = SEARCH_ATTRIBUTES.map((name) => `--name ${name}`).join(' ');
    throw new StartError(
      `Temporal at ${address} could not list or add the search attributes of namespace "${namespace}": ${reasonOf(error)}\n` +
        `Make them by hand: temporal operator search-attribute create --type Keyword ${names}`,
    );
  }
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: unknown };
  return cause instanceof Error ? `${message} (${cause.message})` : message;
}
