// Servers with and without templates, and a wait until a server has everything ready for the next create.
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { shareProofs, type ServerOptions, type ServerProcess } from '../setup/server/process.ts'
import { boot, logLines, remove, type Berth, type MachineOptions } from './berth.ts'

type Plugins = NonNullable<ServerOptions['plugins']>

/** An emulated host finds out first whether VMs can be saved there, which takes minutes. */
const readyTimeoutMs = 900_000
const pauseMs = 200

/** the origin of an instance, as its log of operations says */
export type Way = 'from a spare VM' | 'from a template' | 'by a boot'

/** A spare VM waits for its turn, however long that takes. @param spares how many VMs are kept ready for each shape */
export function templatesOn (spares = 1): Plugins {
  return { instances: { config: { templates: { enabled: true, spares, spareIdle: '2h' } } } }
}

/** Waits until a server has that many spare VMs. */
export async function untilSpare (berth: Berth, spares: number): Promise<void> {
  await untilAtLeast(berth, await metricsUrl(berth.server), { berth_instances_spares: spares })
}

export function templatesOff (): Plugins {
  return { instances: { config: { templates: { enabled: false } } } }
}

/** The same server with the QEMU that BERTH_QEMU names, if it names one. */
export function withNamedQemu (plugins: Plugins): Plugins {
  const binary = process.env['BERTH_QEMU']
  return binary === undefined ? plugins : { ...plugins, 'hypervisor-qemu': { config: { binary } } }
}

/** The same server, but VMs are not kept after a standby: each restore starts a VM. */
export function withoutKept (plugins: Plugins): Plugins {
  const { instances } = plugins
  return { ...plugins, instances: { ...instances, config: { ...instances?.config, hotStandby: { enabled: false } } } }
}

export interface Warmth {
  /** how instances are made from now on */
  readonly way: Way
  /** Waits until the next create has a template, and a spare VM if there should be any: then nothing is made in the background. */
  ready (): Promise<void>
  /** Throws unless an instance was made in the expected way. */
  check (id: string): Promise<void>
}

/** Makes a server create a template of the only shape that it is used for. */
export async function warmUp (berth: Berth, options: Omit<MachineOptions, 'name'>, spares = 1): Promise<Warmth> {
  const url = await metricsUrl(berth.server)
  const way: Way = spares > 0 ? 'from a spare VM' : 'from a template'
  const ready = async (): Promise<void> => { await untilAtLeast(berth, url, { berth_instances_templates: 1, berth_instances_spares: spares }) }
  await remove(berth, await boot(berth, { ...options, name: 'first-of-its-shape' }))
  await ready()
  await shareProofs(berth.server)
  console.error(`it makes instances ${way}`)
  return {
    way,
    ready,
    async check (id) {
      const lines = await logLines(berth, id, 'berth')
      if (!lines.some(line => line.includes(`create: ${way}`))) throw new Error(`the instance was not made ${way}: ${lines.join('; ')}`)
    }
  }
}

async function untilAtLeast (berth: Berth, url: string, wanted: Readonly<Record<string, number>>): Promise<void> {
  const deadline = Date.now() + readyTimeoutMs
  for (const [name, count] of Object.entries(wanted)) {
    while (await gauge(url, name) < count) {
      if (Date.now() > deadline) throw new Error(`the server has made no template, or no spare VM, within ${readyTimeoutMs / 1000} s; its log: ${berth.server.logFile}`)
      await delay(pauseMs)
    }
  }
}

/** Only the server's gauges report on templates; their listener's port is in its log only. */
async function metricsUrl ({ logFile }: ServerProcess): Promise<string> {
  for (;;) {
    const port = /"port":(\d+)[^\n]*"metrics served"/.exec(await readFile(logFile, 'utf8'))?.[1]
    if (port !== undefined) return `http://127.0.0.1:${port}/metrics`
    await delay(pauseMs)
  }
}

async function gauge (url: string, name: string): Promise<number> {
  const text = await (await fetch(url)).text()
  const value = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1]
  if (value === undefined) throw new Error(`the server has no metric ${name}`)
  return Number(value)
}
