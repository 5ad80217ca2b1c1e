/** An answer that is an error, as in "Error responses" of the Compute Engine v1 reference. */
export class ErrorAnswer extends Error {
  readonly status: number;
  readonly reason: string;
  /** Seconds. */
  readonly retryAfter: number | undefined;

  constructor(status: number, reason: string, message: string, retryAfter?: number) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retryAfter = retryAfter;
  }

  get body(): object {
    const { status: code, message, reason } = this;
    return { error: { code, message, errors: [{ message, domain: 'global', reason }] } };
  }
}

export const invalid = (field: string, value: unknown, why: string): ErrorAnswer =>
  new ErrorAnswer(400, 'invalid', `Invalid value for field '${field}': '${value}'. ${why}`);

export const required = (field: string): ErrorAnswer =>
  new ErrorAnswer(400, 'required', `Required field '${field}' not specified`);

export const notFound = (path: string): ErrorAnswer =>
  new ErrorAnswer(404, 'notFound', `The resource '${path}' was not found`);

/** Nobody may see what there is not. It used to be a 400, invalid, as still for some calls. */
export const unknownZone = (zone: string): ErrorAnswer =>
  new ErrorAnswer(403, 'forbidden', `Permission denied on 'locations/${zone}' (or it may not exist).`);
