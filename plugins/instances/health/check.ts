// A health check, and what the results of its probes come to. Pure.
interface Pace {
  readonly intervalMs: number
  readonly timeoutMs: number
  readonly startPeriodMs: number
  readonly failureThreshold: number
  readonly successThreshold: number
}

export interface CommandCheck extends Pace {
  readonly type: 'exec'
  readonly command: readonly string[]
  readonly workingDir?: string
}

export interface TcpCheck extends Pace {
  readonly type: 'tcp'
  /** of the guest */
  readonly port: number
}

export interface HttpCheck extends Pace {
  readonly type: 'http'
  readonly port: number
  readonly path: string
  readonly scheme: 'http' | 'https'
  /** absent: any of 200 to 399 */
  readonly expectedStatus?: number
}

export type HealthCheck = CommandCheck | TcpCheck | HttpCheck

/** Kept in memory only: a server that starts begins to probe at once. */
export interface Health {
  readonly status: 'unknown' | 'starting' | 'healthy' | 'unhealthy'
  readonly failures: number
  readonly successes: number
  /** epoch `ms` */
  readonly lastCheckedAt?: number
  readonly lastSuccessAt?: number
  readonly lastFailureAt?: number
  readonly lastError?: string
}

/** The health of a program that is not probed at the moment; the last result is kept for display. */
export function unknownHealth (before: Health | undefined, status: 'unknown' | 'starting' = 'unknown'): Health {
  return { ...before, status, failures: 0, successes: 0 }
}

/** The health after one more probe. @param error why the probe failed; undefined when it did not @param inGrace whether a failure is forgiven, since the program has just begun */
export function probed (before: Health, { failureThreshold, successThreshold }: Pick<HealthCheck, 'failureThreshold' | 'successThreshold'>, error: string | undefined, inGrace: boolean, now: number): Health {
  if (error === undefined) {
    const successes = before.successes + 1
    return { ...before, status: successes >= successThreshold ? 'healthy' : before.status, failures: 0, successes, lastCheckedAt: now, lastSuccessAt: now }
  }
  const failures = before.failures + 1
  return { ...before, status: failures >= failureThreshold && !inGrace ? 'unhealthy' : before.status, failures, successes: 0, lastCheckedAt: now, lastFailureAt: now, lastError: error }
}
