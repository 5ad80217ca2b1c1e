import { type Operation, urlOf } from './resources.ts';

/** Why an operation fails; `code` as in `error.errors[].code`. */
export interface OperationFailure {
  code: string;
  message: string;
  status: number;
}

export interface NewOperation {
  zone: string;
  type: Operation['operationType'];
  targetLink: string;
  targetId: string;
  requestId: string | null;
}

/** The operations of the project's zones, newest last. */
export interface Operations {
  start(operation: NewOperation): Operation;
  run(operation: Operation): void;
  end(operation: Operation, failure?: OperationFailure): void;
  in(zone: string): Operation[];
  /** The insert that an earlier request with this id began: within an hour, the same request again does nothing. */
  repeated(zone: string, requestId: string | null): Operation | undefined;
}

const REQUEST_ID_MILLIS = 60 * 60_000;

export function createOperations(project: string, now: () => number): Operations {
  const all: (Operation & { inZone: string })[] = [];
  const timestamp = () => new Date(now()).toISOString();

  return {
    start({ zone, type, targetLink, targetId, requestId }) {
      const id = String(7_000_000_000_000_000 + all.length);
      const at = timestamp();
      const operation: (typeof all)[number] = {
        kind: 'compute#operation',
        id,
        // A name, not the number that `id` is; the client library's own `name` is the latter.
        name: `operation-${now()}-${all.length}`,
        zone: urlOf(project, `zones/${zone}`),
        operationType: type,
        targetLink,
        targetId,
        status: 'PENDING',
        progress: 0,
        insertTime: at,
        creationTimestamp: at,
        ...(requestId !== null && { clientOperationId: requestId }),
        inZone: zone,
      };
      all.push(operation);
      return operation;
    },
    run(operation) {
      operation.status = 'RUNNING';
      operation.startTime = timestamp();
    },
    end(operation, failure) {
      operation.status = 'DONE';
      operation.progress = 100;
      operation.endTime = timestamp();
      if (!failure) return;
      operation.error = { errors: [{ code: failure.code, message: failure.message }] };
      operation.httpErrorStatusCode = failure.status;
      operation.httpErrorMessage = failure.status === 403 ? 'FORBIDDEN' : 'ERROR';
    },
    in: (zone) => all.filter(({ inZone }) => inZone === zone),
    repeated: (zone, requestId) =>
      all.find(
        ({ inZone, clientOperationId, insertTime }) =>
          requestId !== null &&
          inZone === zone &&
          clientOperationId === requestId &&
          now() - Date.parse(insertTime) < REQUEST_ID_MILLIS,
      ),
  };
}
