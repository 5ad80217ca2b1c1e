import { Client, Connection } from '@temporalio/client';

/** Temporal as someone who audits it sees it. */
export interface Histories {
  client: Client;
  /** Everything that Temporal keeps of every run of every workflow, by workflow and run, as one text each. */
  texts(): Promise<Map<string, string>>;
  close(): Promise<void>;
}

export async function openHistories(address: string): Promise<Histories> {
  const connection = await Connection.connect({ address });
  const client = new Client({ connection });
  return {
    client,
    async texts() {
      const found = new Map<string, string>();
      for await (const { workflowId, runId } of client.workflow.list()) {
        const handle = client.workflow.getHandle(workflowId, runId);
        const history = await handle.fetchHistory();
        // Heartbeats and failures of activities that have not ended yet are in no history, but on the screen.
        const { raw } = await handle.describe();
        found.set(`${workflowId} ${runId}`, textOf([history, raw]));
      }
      return found;
    },
    close: () => connection.close(),
  };
}

/** Every string and every byte array in it. Payloads are byte arrays and are read as text, byte by byte. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return `${value}\n`;
  if (value instanceof Uint8Array) return `${Buffer.from(value).toString('latin1')}\n`;
  if (typeof value !== 'object' || value === null) return '';
  return Object.entries(value)
    .map(([key, member]) => `${key}\n${textOf(member)}`)
    .join('');
}
