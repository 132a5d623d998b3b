// The programs of this benchmark: each is a process of its own that gets its parameters as JSON, and reports its result once.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'

export interface Place { readonly address: string, readonly port: number }

/** The address of an origin or a forwarder, and its certificate; `to` is where a forwarder sends its requests, `ca` the authority that it trusts. */
export interface ServerGiven {
  readonly place: Place
  readonly cert: string
  readonly key: string
  readonly ca?: string
  readonly to?: Place
}

/** How clients reach the origin. */
export interface Way {
  readonly to: Place
  /** the authority that the certificate is checked with */
  readonly ca: string
  /** `Host`, and the name of the handshake */
  readonly host: string
  /** the address that a guest's packets come from */
  readonly from?: string
  /** the target of a CONNECT request, for proxies that need one */
  readonly connect?: Place
}

/** Starts a program and waits until it listens. */
export async function startServerProgram (name: string, given: object): Promise<ChildProcess> {
  const child = start(name, given)
  await said(child, name)
  return child
}

/** Runs a program to its end and returns its result. */
export async function askProgram (name: string, given: object): Promise<Readonly<Record<string, number>>> {
  const child = start(name, given)
  const ended = once(child, 'exit')
  const found = await said(child, name)
  await ended
  if (typeof found !== 'object' || found === null) throw new Error(`${name} found nothing`)
  return Object.fromEntries(Object.entries(found).map(([key, value]) => [key, Number(value)]))
}

function start (name: string, given: object): ChildProcess {
  return fork(new URL(`programs/${name}.js`, import.meta.url), [JSON.stringify(given)], { stdio: ['ignore', 2, 'inherit', 'ipc'] })
}

async function said (child: ChildProcess, name: string): Promise<unknown> {
  return await new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', code => reject(new Error(`${name} ended with ${String(code)} before it said anything`)))
  })
}
