// What every case of the clients has: a guest to run them in, the origins, and the policy with its secrets.
import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { ORIGINS, type OriginName, type Seen } from './origins/contract.ts'
import { valuesOf } from './origins/host.ts'
import type { Outside } from './outside.ts'

export interface Ran {
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: number | undefined
}

export interface Guest {
  /** Runs a line of shell. */
  run (script: string): Promise<Ran>
}

/** The real values, by the variable of the request that they come in. */
export interface Secrets {
  readonly REAL_KEY: string
  /** base64 of `user:password` */
  readonly REAL_LOGIN: string
  readonly REAL_TRACE: string
}

export interface Stage {
  readonly guest: Guest
  readonly outside: Outside
  readonly secrets: Secrets
}

/** Secrets that nobody else has. */
export function makeSecrets (): Secrets {
  // Letters and digits alone: each looks the same in every text that quotes or escapes.
  // They have a word in common, so that a search for one is a search for all.
  const word = randomBytes(24).toString('hex')
  return { REAL_KEY: `key${word}`, REAL_LOGIN: Buffer.from(`user:${word}`).toString('base64'), REAL_TRACE: `trace${word}` }
}

/** The hosts that see `REAL_KEY`, and those that see `REAL_LOGIN`. All see `REAL_TRACE`. */
const KEY_HOSTS: readonly OriginName[] = ['api', 'wild', 'socket', 'events', 'grpc', 'packages']
const LOGIN_HOSTS: readonly OriginName[] = ['git', 'registry', 'login']

/** `credentials` of a create request. */
export const CREDENTIALS = {
  API_KEY: { source: { env: 'REAL_KEY' }, inject: [{ hosts: KEY_HOSTS.map((name) => name === 'wild' ? '*.wild.good.test' : ORIGINS[name]), as: { header: 'Authorization', format: 'Bearer ${value}' } }] },
  LOGIN: { source: { env: 'REAL_LOGIN' }, inject: [{ hosts: LOGIN_HOSTS.map((name) => ORIGINS[name]), as: { header: 'Authorization', format: 'Basic ${value}' } }] },
  TRACE: { source: { env: 'REAL_TRACE' }, inject: [{ as: { header: 'X-Trace', format: '${value}' } }] }
} as const

/** Runs a line of shell that must succeed; what it printed. */
export async function succeed (t: Test, guest: Guest, script: string): Promise<string> {
  const { stdout, stderr, exitCode } = await guest.run(script)
  if (exitCode !== 0) t.fail(`${script} ended with ${exitCode ?? 'nothing'}`, { stderr, stdout: stdout.slice(0, 2000) })
  return stdout
}

/** Runs `step`; what it gave, and the requests that came to the origins meanwhile. */
export async function watched<T> ({ outside }: Stage, step: () => Promise<T>): Promise<{ readonly result: T, readonly seen: readonly Seen[] }> {
  const before = (await outside.seen()).length
  const result = await step()
  return { result, seen: (await outside.seen()).slice(before) }
}

/** What `Authorization` of a request is to be after the proxy; `undefined` where no rule sets it. */
export function expected ({ origin, secure }: Seen, secrets: Secrets): string | undefined {
  if (!secure) return undefined
  if (KEY_HOSTS.includes(origin)) return `Bearer ${secrets.REAL_KEY}`
  return LOGIN_HOSTS.includes(origin) ? `Basic ${secrets.REAL_LOGIN}` : undefined
}

/** Asserts that each of these requests has what the rules say, once, and nothing that is secret elsewhere. */
export function checkPlacement (t: Test, seen: readonly Seen[], secrets: Secrets): void {
  for (const each of seen) {
    const place = `${each.method} ${each.secure ? 'https' : 'http'}://${ORIGINS[each.origin]}${each.url}`
    const wanted = expected(each, secrets)
    if (wanted !== undefined) t.same(valuesOf(each.headers, 'authorization'), [wanted], `${place}: the real credential, once`)
    t.same(valuesOf(each.headers, 'x-trace'), each.secure ? [secrets.REAL_TRACE] : [], `${place}: the credential of all hosts ${each.secure ? 'is there' : 'is not'}`)
    // Everything else of the request, as text.
    const rest = [each.url, each.body, ...each.headers.filter((value, index) => !isPlace(each, index, value, secrets))].join('\n')
    for (const [name, value] of Object.entries(secrets)) t.notOk(rest.includes(value), `${place}: ${name} is nowhere else`)
  }
}

function isPlace (seen: Seen, index: number, value: string, secrets: Secrets): boolean {
  const name = index % 2 === 1 ? seen.headers[index - 1]?.toLowerCase() : undefined
  return (name === 'authorization' && value === expected(seen, secrets)) || (name === 'x-trace' && seen.secure && value === secrets.REAL_TRACE)
}
