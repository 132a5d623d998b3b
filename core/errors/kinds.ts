// The closed list of error kinds, and the only place where a kind is mapped to an HTTP status.

export const STATUS_BY_KIND = {
  invalid: 400,
  unauthorized: 401,
  forbidden: 403,
  'not-found': 404,
  conflict: 409,
  gone: 410,
  precondition: 412,
  'wrong-state': 409,
  'too-large': 413,
  'rate-limited': 429,
  internal: 500,
  unsupported: 501,
  unavailable: 503,
  timeout: 504
} as const

export type ErrorKind = keyof typeof STATUS_BY_KIND
