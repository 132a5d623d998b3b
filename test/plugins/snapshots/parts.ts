// The snapshots plugin's own parts on a real database and real files, stopped dead at any step: between two calls to its tables, its files,
// the host's tools, the images or the instances.
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import type { Test } from 'tap'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { createDiskSpace } from '../../../core/fs/disk-space.ts'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { expandMemory } from '../../../core/library/compressed-memory.ts'
import { createLocks } from '../../../core/jobs/locks.ts'
import { createJobs } from '../../../core/jobs/queue.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import type { CopyFiles, InstanceCopies, InstanceCopy, InstanceState } from '../../../plugins/instances/contract.ts'
import { createCompressor } from '../../../plugins/snapshots/compressor.ts'
import type { Context } from '../../../plugins/snapshots/context.ts'
import { SnapshotFiles } from '../../../plugins/snapshots/files.ts'
import { manifest } from '../../../plugins/snapshots/manifest.ts'
import { SnapshotRepository } from '../../../plugins/snapshots/repository.ts'
import type { ScriptedHost } from '../instances/scripted.ts'
import { TestClock } from './app.ts'

/** Called before and after each step; it rejects or hangs where the server is to fail or to die. */
export type OnStep = (step: string) => Promise<void>

export interface Parts {
  readonly context: Context
  readonly host: ScriptedHost
  readonly folder: string
  /** what a machine that is made of a snapshot finds: disk, state and memory */
  content (id: string): Promise<string>
}

const commands = createHostCommands()
const MEMORY = 'the memory of a guest '.repeat(1000)
export const CONTENT = `the disk, the state, ${MEMORY}`

/** The parts of one server; another one on the same folder and host finds what that has left. */
export async function openParts (t: Test, folder: string, host: ScriptedHost, onStep: OnStep = async () => {}): Promise<Parts> {
  const database = openDatabase(`sqlite:${join(folder, 'test.db')}`)
  await migratePlugin(database, manifest.id, manifest.migrations)
  const log = pino({ level: 'silent' })
  const jobs = createJobs()
  const locks = createLocks()
  const repository = new SnapshotRepository(database, 'host')
  const files = new SnapshotFiles(folder)
  const watched = {
    repository: watch(onStep, 'repository', repository, ['insert', 'complete', 'abandon', 'beginDelete', 'remove', 'setCompressed', 'setCompressionError']),
    files: watch(onStep, 'files', files, ['make', 'sync', 'measure', 'remove', 'beginCompression', 'finishCompression', 'dropCompression', 'removeRawMemory']),
    images: watch(onStep, 'images', host.images, ['hold', 'release']),
    copies: watch(onStep, 'copies', scriptedCopies(folder), ['capture']),
    commands: watch<HostCommands>(onStep, 'commands', commands, ['run'])
  }
  const compressor = createCompressor({ log, locks, disk: createDiskSpace(folder, { bytes: 0, inodes: 0 }), queue: jobs.queue('compression', { concurrency: 1 }), ...watched })
  await files.prepare()
  const closing = new AbortController()
  t.teardown(async () => {
    closing.abort()
    await jobs.close()
    await database.destroy()
  })
  return {
    context: { log, locks, compressor, clock: new TestClock(), closing, ...watched },
    host,
    folder,
    async content (id) {
      const snapshot = await repository.withCopy(id)
      if (snapshot === undefined) throw new Error(`there is no snapshot ${id}`)
      return await contentOf(files.of(snapshot), folder)
    }
  }
}

/** The same object, with a step before and after each call of the named methods. */
function watch<T extends object> (onStep: OnStep, name: string, target: T, methods: readonly (keyof T & string)[]): T {
  const watched = new Set<string | symbol>(methods)
  return new Proxy(target, {
    get (_target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      if (!watched.has(key)) return value.bind(target)
      return async (...args: unknown[]) => {
        const step = `${name}.${String(key)}${name === 'commands' ? ` ${String(args[0])}` : ''}`
        await onStep(`before ${step}`)
        const result: unknown = await Reflect.apply(value, target, args)
        await onStep(`after ${step}`)
        return result
      }
    }
  })
}

/** Instances that are all one; what a machine would be made of is read, and no machine made. */
function scriptedCopies (folder: string): InstanceCopies {
  const source = { id: 'source', name: 'web', state: 'Running' as InstanceState, hypervisor: 'qemu' as const, imageDigest: 'sha256:x', isWorker: false }
  return {
    find: () => source,
    findOwn: () => source,
    compression: (_ref, asked) => asked === undefined || !asked.enabled ? undefined : { algorithm: asked.algorithm ?? 'zstd', level: 1 },
    async capture (_ref, kind, { overlay, state, memory }): Promise<InstanceCopy> {
      await writeFile(overlay, 'the disk')
      await writeFile(state, 'the state')
      await writeFile(memory.path, MEMORY)
      return { version: 1, kind, sourceId: source.id, sourceName: source.name, hypervisor: 'qemu', image: 'image', imageDigest: source.imageDigest, spec: {} }
    },
    fork: async (_copy, files) => await contentOf(files, folder),
    forget: () => {},
    restore: async (_ref, _copy, files) => await contentOf(files, folder)
  }
}

async function contentOf ({ overlay, state, memory }: CopyFiles, folder: string): Promise<string> {
  const expanded = join(folder, 'expanded')
  if (memory.algorithm !== undefined) await expandMemory(commands, memory.path, expanded, memory.algorithm)
  const texts = await Promise.all([overlay, state, memory.algorithm === undefined ? memory.path : expanded].map(async (path) => await readFile(path, 'utf8')))
  await rm(expanded, { force: true })
  return texts.join(', ')
}

/** Names in the folder of a snapshot, or of all. */
export async function names ({ context }: Parts, id = ''): Promise<string[]> {
  return (await readdir(join(context.files.folder, id))).sort()
}
