// `npm run bench -- density`: the proportional memory of idle machines made by the server, against that of as many booted by hand.
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { HostCommands } from '../../core/contracts/services.ts'
import { pathsOf } from '../../plugins/instances/folder/paths.ts'
import { boot, idOf, remove, running, type Berth } from '../berth.ts'
import { figureOf, print, series, takeTurns } from '../harness.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { prepareRawBoots, type RawBoots, type RawVm } from '../raw-boot.ts'
import { warmUp, type Warmth } from '../templates.ts'
import { pssOf, vmmOf } from '../vmm.ts'
import { heldByFiles } from './held-by-files.ts'
import { withWarmAndCold } from '../warm-and-cold.ts'

const machines = 10
const options = { argv: ['/bin/sh', '-c', 'echo ready; sleep 6000'], size: '256MB' }
/** a pause, so that the guest's work after its first line counts as well */
const settleMs = 5000

async function density ({ runs }: BenchOptions): Promise<void> {
  await withWarmAndCold(async ({ warm, cold, commands, folder }) => {
    const raw = await prepareRawBoots(cold, options, commands, join(folder, 'raw'))
    const warmth = await warmUp(warm, options, 0)
    await measure({ berth: warm, warmth, raw, commands, areShared: await sharesMemory(warm) }, runs)
  })
}

interface Measured {
  readonly berth: Berth
  readonly warmth: Warmth
  readonly raw: RawBoots
  readonly commands: HostCommands
  /** whether the machines share their template's memory file */
  readonly areShared: boolean
}

async function sharesMemory ({ api }: Berth): Promise<boolean> {
  return JSON.stringify(await api.call('GET', '/capabilities')).includes('"private-memory"')
}

async function measure ({ berth, warmth, raw, commands, areShared }: Measured, runs: number): Promise<void> {
  const clones = series('clones of one template')
  const forks = series('forks of one snapshot')
  const disk = series('disk')
  const cached = series('page cache')
  const booted = series('the same QEMU command line cold-booted by hand')
  const snapshot = await snapshotOf(berth)
  await takeTurns({
    runs,
    warmUps: 0,
    sides: [
      async (run, keep) => keep(clones, await pssOfMade(berth, async (index) => {
        const id = await boot(berth, { ...options, name: `clone-${run}-${index}` })
        await warmth.check(id)
        return id
      }, async (folders) => {
        const { diskMib, cachedMib } = await heldByFiles(commands, [...folders, join(berth.server.dataDir, 'templates')])
        keep(disk, diskMib)
        keep(cached, cachedMib)
      })),
      async (run, keep) => keep(forks, await pssOfMade(berth, async (index) => {
        const id = idOf(await berth.api.call('POST', `/snapshots/${snapshot}/fork`, { name: `fork-${run}-${index}`, target_state: 'Running' }))
        await running(berth, id)
        return id
      })),
      async (_run, keep) => keep(booted, await pssOfBooted(raw))
    ]
  })
  const note = `PSS of ${machines} VMM processes together, ${settleMs / 1000} s after the last came up; 256 MB, 1 vCPU, idle; nothing else maps the template; memory ${areShared ? 'mapped privately of the template\'s file' : 'copied for each'}`
  print(figureOf(`proportional memory of ${machines} idle machines`, 'MiB', clones.values, { other: booted, ratioAtMost: areShared ? 0.35 : 0.5, note }))
  print(figureOf(`disk space of ${machines} idle machines and their template`, 'MiB', disk.values, { note: 'blocks of all their files; a file that several have is counted once' }))
  print(figureOf(`page cache of the files of ${machines} idle machines and their template`, 'MiB', cached.values, { note: 'what the host can take back without a loss once it is written; a part of it is in the PSS above where a VMM maps it' }))
  print(figureOf(`proportional memory of ${machines} idle forks of one snapshot`, 'MiB', forks.values, { other: booted, note }))
}

/** A snapshot of a machine that has just booted; the machine itself is deleted. */
async function snapshotOf (berth: Berth): Promise<string> {
  const source = await boot(berth, { ...options, name: 'source' })
  const id = idOf(await berth.api.call('POST', `/instances/${source}/snapshots`, { name: 'of-all', kind: 'Standby' }))
  await remove(berth, source)
  return id
}

async function pssOfMade (berth: Berth, make: (index: number) => Promise<string>, look: (folders: readonly string[]) => Promise<void> = async () => {}): Promise<number> {
  const ids: string[] = []
  for (let index = 0; index < machines; index++) ids.push(await make(index))
  const folders = ids.map((id) => pathsOf(berth.server.dataDir, id).directory)
  const vmms = await Promise.all(folders.map(vmmOf))
  const total = await settledPss(vmms.map(({ pid }) => pid))
  await look(folders)
  for (const id of ids) await remove(berth, id)
  return total
}

async function pssOfBooted (raw: RawBoots): Promise<number> {
  const vms: RawVm[] = []
  for (let index = 0; index < machines; index++) vms.push(await raw.start())
  const total = await settledPss(vms.map(({ pid }) => pid))
  for (const vm of vms) await vm.end()
  return total
}

/** MiB of all processes together, after a pause in which the guests finish their start. */
async function settledPss (pids: readonly number[]): Promise<number> {
  await delay(settleMs)
  const each = await Promise.all(pids.map(pssOf))
  return each.reduce((sum, bytes) => sum + bytes, 0) / 2 ** 20
}

export const benchmarks: Benchmarks = { density }
