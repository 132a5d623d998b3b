// The programs of this benchmark: each is a process of its own that is told what it needs as JSON, and says once what it has to say.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'

export interface Place { readonly address: string, readonly port: number }

/** Where an origin or a forwarder stands, and its certificate; `to` is where a forwarder sends what it gets, `ca` what it trusts. */
export interface ServerGiven {
  readonly place: Place
  readonly cert: string
  readonly key: string
  readonly ca?: string
  readonly to?: Place
}

/** How clients get to the origin. */
export interface Way {
  readonly to: Place
  /** what the certificate is checked with */
  readonly ca: string
  /** `Host`, and the name of the handshake */
  readonly host: string
  /** the address that a guest's packets come from */
  readonly from?: string
  /** asked for with CONNECT first, of proxies that want it so */
  readonly connect?: Place
}

/** Starts a program and waits until it listens. */
export async function startServerProgram (name: string, given: object): Promise<ChildProcess> {
  const child = start(name, given)
  await said(child, name)
  return child
}

/** Runs a program to its end; what it found. */
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
