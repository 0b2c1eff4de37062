/** An answer of etcd that says no, with its gRPC code. */
export class EtcdError extends Error {
  override readonly name = 'EtcdError';

  constructor(
    message: string,
    readonly code: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** No answer, or none that can be read. Whether it was executed nobody knows, unless it was never sent. */
export class NoEtcdAnswerError extends Error {
  override readonly name = 'NoEtcdAnswerError';

  constructor(
    message: string,
    readonly isSent: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The gRPC codes that mean something to us. */
export const Code = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  failedPrecondition: 9,
  unavailable: 14,
  unauthenticated: 16,
} as const;
