/** The two calls of pino that the host provider makes. */
export interface HostLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}
