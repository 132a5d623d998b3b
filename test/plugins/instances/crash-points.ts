// What may happen between any two steps of the server's work on files. An operation runs with every change that it makes to the data folder in the
// test's hands: everything there is copied before each, as a server that starts after a crash would find it, or one of them fails.
import { constants, lstatSync, promises, readdirSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import type { Test } from 'tap'
import { hasCode } from '../../../core/errors/system-code.ts'
import { partOfCommit, playsWholeTables } from '../../../setup/test/share-of-commit.ts'
import { copyOfData } from './crash.ts'

export interface CrashPoint {
  /** the change that did not happen any more */
  readonly step: string
  readonly dataDir: string
}

const CHANGES = ['chmod', 'chown', 'copyFile', 'link', 'mkdir', 'open', 'rename', 'rm', 'utimes', 'writeFile'] as const
type Change = typeof CHANGES[number]

/** changes that need room on the disk, as far as anybody can tell */
const GROWING: readonly Change[] = ['copyFile', 'mkdir', 'open', 'writeFile']

/** Runs `call`. The crash points are in the order of time; steps that changed nothing, such as the removal of what is not there, give none. */
export async function crashPoints (t: Test, dataDir: string, call: () => Promise<unknown>): Promise<CrashPoint[]> {
  const points: CrashPoint[] = []
  let known = ''
  // One after the other, though the operation does some of its work side by side.
  let last: Promise<void> = Promise.resolve()
  await watched(dataDir, async (change, names) => {
    const before = last
    last = (async () => {
      await before
      const state = stateOf(dataDir)
      if (state === known) return
      known = state
      points.push({ step: `${points.length + 1}: ${change} ${names}`, dataDir: await copyOfData(t, dataDir) })
    })()
    await last
  }, call)
  return points
}

/** Each path below a folder with what tells whether it was changed. Read here and at once: to start a program for it takes a process of this size many times as long. */
function stateOf (folder: string): string {
  const walk = (path: string): string[] => {
    try {
      const { mode, size, uid, mtimeNs } = lstatSync(path, { bigint: true })
      const below = (Number(mode) & constants.S_IFMT) === constants.S_IFDIR ? readdirSync(path).flatMap((name) => walk(join(path, name))) : []
      return [`${path} ${mode} ${size} ${uid} ${mtimeNs}`, ...below]
    } catch (error) {
      // It went away just now.
      if (hasCode(error, 'ENOENT')) return []
      throw error
    }
  }
  return walk(folder).join('\n')
}

const PARTS = 4

/**
 * The points at which a server is started. The long tier takes all; the fast one a quarter, which is another one for another commit, and the last,
 * after which nothing is left to do.
 */
export function chosen (points: readonly CrashPoint[]): readonly CrashPoint[] {
  if (playsWholeTables || process.argv[1]?.endsWith('.long.test.js') === true) return points
  const part = partOfCommit(PARTS)
  return points.filter((_point, index) => index % PARTS === part || index === points.length - 1)
}

/** Runs `call` with a disk that is full at its `n`th step that needs room. Which step that was; undefined when it has fewer. */
export async function withFullDisk (dataDir: string, n: number, call: () => Promise<unknown>): Promise<string | undefined> {
  let count = 0
  let failed: string | undefined
  await watched(dataDir, async (change, names) => {
    if (!GROWING.includes(change) || count++ !== n) return
    failed = `${change} ${names}`
    throw Object.assign(new Error(`ENOSPC: no space left on device, ${failed}`), { code: 'ENOSPC' })
  }, call)
  return failed
}

/** Runs `call`, and `act` once, before the change whose description has these words. */
export async function atChange (dataDir: string, words: string, act: () => Promise<unknown>, call: () => Promise<unknown>): Promise<void> {
  let isDone = false
  await watched(dataDir, async (change, names) => {
    if (isDone || !`${change} ${names}`.includes(words)) return
    isDone = true
    await act()
  }, call)
  if (!isDone) throw new Error(`there was no ${words}`)
}

/** Runs `call` with a disk that fails once, at that change. */
export async function failingOnce (dataDir: string, words: string, call: () => Promise<unknown>): Promise<void> {
  await atChange(dataDir, words, async () => { throw Object.assign(new Error(`EIO: i/o error, ${words}`), { code: 'EIO' }) }, call)
}

/** Runs `call` and tells of each change before it is made. */
async function watched (dataDir: string, before: (change: Change, names: string) => Promise<void>, call: () => Promise<unknown>): Promise<void> {
  const originals = Object.fromEntries(CHANGES.map((name) => [name, promises[name]]))
  for (const name of CHANGES) {
    const original: unknown = promises[name]
    if (typeof original !== 'function') throw new Error(`node:fs/promises has no ${name}`)
    Object.assign(promises, {
      async [name] (...args: unknown[]) {
        const paths = args.slice(0, name === 'rename' || name === 'copyFile' ? 2 : 1).map(String)
        if (paths.some((path) => path.startsWith(dataDir)) && !(name === 'open' && isReading(args[1])) && !isLog(paths[0])) {
          await before(name, paths.map((path) => basename(path).replace(/[\da-f-]{36}/, 'random')).join(' to '))
        }
        return await Reflect.apply(original, promises, args)
      }
    })
  }
  syncBuiltinESMExports()
  try {
    await call()
  } finally {
    Object.assign(promises, originals)
    syncBuiltinESMExports()
  }
}

function isReading (flags: unknown): boolean {
  return flags === undefined || flags === 'r' || (typeof flags === 'number' && (flags & (promises.constants.O_WRONLY | promises.constants.O_RDWR)) === 0)
}

/** The log says what has been, and decides nothing. */
function isLog (path: string | undefined): boolean {
  return path?.endsWith('operations.log') ?? false
}
