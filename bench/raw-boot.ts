// The other side of most comparisons: the command line of a machine that the server has booted, started by hand on disks of its own, with its requests where its VMM takes
// some (raw-rest.ts), and nothing around it but the first exchange of the guest protocol.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pino from 'pino'
import type { HostCommands } from '../core/contracts/services.ts'
import { hasCode } from '../core/errors/system-code.ts'
import type { Workload } from '../plugins/guest/contract.ts'
import { StreamLink } from '../plugins/guest/link/link.ts'
import { makeFiles, makeFolder } from '../plugins/instances/folder/files.ts'
import { pathsOf } from '../plugins/instances/folder/paths.ts'
import { boot, firstLine, overlayMegabytes, remove, type Berth, type MachineOptions } from './berth.ts'
import { lineInFile } from './output-file.ts'
import { bootOver, placeLinks, readRestModel, restLine, type RestModel } from './raw-rest.ts'
import { vmmOf } from './vmm.ts'

export interface RawBoots {
  /** Boots a machine by hand and resolves when it has printed its first line. */
  start (): Promise<RawVm>
  /** The same, and ends the machine. Milliseconds from the start of the VMM to the first line; the disks are made before. */
  time (): Promise<number>
}

export interface RawVm {
  readonly elapsedMs: number
  readonly pid: number
  /** Ends it and removes its files. */
  end (): Promise<void>
}

/** for a new VMM to listen, also on an emulated host */
const CONNECT_TIMEOUT_MS = 120_000

/** the name of this side in figures */
export const rawBootName = 'the same VMM, told the same, cold-booted by hand to its first line of output, its disks made before'

export interface Model {
  /** the VMM's command line */
  readonly argv: readonly string[]
  /** the machine's folder */
  readonly directory: string
  readonly rest?: RestModel
}

/** Makes a server boot the machine once, which must not come from a template, and returns what its VMM was told. */
export async function bootModel (server: Berth, options: Omit<MachineOptions, 'name'>): Promise<Model> {
  const id = await boot(server, { ...options, name: 'model' })
  const { directory } = pathsOf(server.server.dataDir, id)
  const { argv } = await vmmOf(directory)
  if (argv.includes('-incoming')) throw new Error('the model has not been booted, but made of a memory image')
  const rest = await readRestModel(directory, server.server.dataDir)
  await remove(server, id)
  return { argv: rest === undefined ? argv.map(takingMemory) : restLine(argv), directory, ...rest === undefined ? {} : { rest } }
}

/** A VMM that is started by hand allocates its memory itself. */
function takingMemory (word: string): string {
  if (!word.includes('memory-backend-file')) return word
  const { id, size } = JSON.parse(word)
  return JSON.stringify({ 'qom-type': 'memory-backend-ram', id, size })
}

/**
 * @param server boots the machine once, so that its command line is known
 * @param folder for the files of the machines that are booted by hand
 */
export async function prepareRawBoots (server: Berth, options: Omit<MachineOptions, 'name'>, commands: HostCommands, folder: string): Promise<RawBoots> {
  const model = await bootModel(server, options)
  let made = 0
  const start = async (): Promise<RawVm> => await bootByHand({ ...model, commands, folder, name: `raw-${made++}`, workload: workloadOf(options.argv) })
  return {
    start,
    async time () {
      const vm = await start()
      await vm.end()
      return vm.elapsedMs
    }
  }
}

/** What runs in a machine that is booted by hand. */
export function workloadOf (argv: readonly string[]): Workload {
  return { argv, env: { PATH: '/bin' }, cwd: '/', user: '', hostname: 'by-hand', mounts: [], agent: true }
}

export interface ByHand extends Model {
  readonly commands: HostCommands
  /** folder for the machine's files, which are below `name` in it */
  readonly folder: string
  readonly name: string
  readonly workload: Workload
  /** path of the VMM's network namespace; undefined: this process's own */
  readonly namespace?: string
}

/** Starts a command line on disks of its own and resolves when the guest has printed its first line. */
export async function bootByHand ({ argv, directory, rest, commands, folder, name, workload, namespace }: ByHand): Promise<RawVm> {
  const paths = pathsOf(folder, name)
  await mkdir(join(folder, 'instances'), { recursive: true })
  await makeFolder(paths)
  await makeFiles(paths, overlayMegabytes * 2 ** 20, undefined, commands)
  const there = (word: string): string => word.replaceAll(directory, paths.directory)
  const cwd = join(paths.directory, rest?.driver ?? 'qemu')
  await mkdir(cwd)
  if (rest !== undefined) await placeLinks(rest, cwd, there)
  const line = argv.map(there)
  const link = async (): Promise<Socket> => rest === undefined ? await connected(join(cwd, 'agent.sock')) : await bootOver(rest, cwd)
  return await startVm(namespace === undefined ? line : ['nsenter', `--net=${namespace}`, ...line], { paths, cwd, workload, link })
}

interface Start {
  readonly paths: ReturnType<typeof pathsOf>
  readonly cwd: string
  readonly workload: Workload
  /** the connection to the guest of the VMM that was just started */
  readonly link: () => Promise<Socket>
}

async function startVm ([file, ...args]: readonly string[], { paths, cwd, workload, link }: Start): Promise<RawVm> {
  if (file === undefined) throw new Error('the command line is empty')
  const seen = lineInFile(paths.output, line => line === firstLine)
  const started = performance.now()
  const vmm = spawn(file, args, { cwd, stdio: 'ignore' })
  const ended = once(vmm, 'exit')
  await Promise.all([link().then(async (socket) => { await runOver(socket, workload) }), seen])
  const elapsedMs = performance.now() - started
  if (vmm.pid === undefined) throw new Error('the VMM has no process')
  return {
    elapsedMs,
    pid: vmm.pid,
    async end () {
      vmm.kill('SIGKILL')
      await ended
      await rm(paths.directory, { recursive: true, force: true })
    }
  }
}

/** Tells the guest behind a socket what to run, once the VMM listens there. */
export async function runWorkload (socketPath: string, workload: Workload): Promise<void> {
  await runOver(await connected(socketPath), workload)
}

async function runOver (socket: Socket, workload: Workload): Promise<void> {
  const link = new StreamLink(socket, { log: pino({ level: 'silent' }), answerTimeoutMs: 120_000 })
  await link.run(workload)
  link.close()
}

/** Connects as soon as the VMM listens; no event reports that. */
async function connected (path: string): Promise<Socket> {
  for (const deadline = performance.now() + CONNECT_TIMEOUT_MS; performance.now() < deadline;) {
    const socket = connect({ path })
    try {
      await once(socket, 'connect')
      return socket
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'ECONNREFUSED')) throw error
      await delay(2)
    }
  }
  throw new Error('the VMM did not open its socket')
}
