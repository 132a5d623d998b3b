// Keeps apt's answers about packages until the files behind it change. Where apt keeps no index of its lists, as in containers, each query takes it half a
// second of processor time, and the first VM of a server waits for that.
import { createHash } from 'node:crypto'
import { mkdir, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { writeFileDurably } from '../../../core/fs/durable.ts'
import { readIfThere } from '../../../core/fs/read-if-there.ts'
import { resolvePackage, type PackageVersion } from './kernel-package.ts'

/** apt's lists, its sources and preferences, and what is installed */
const SOURCES = ['/var/lib/apt/lists', '/etc/apt', '/var/lib/dpkg/status']
/** by the name that apt was asked for */
const Note = Type.Object({ sources: Type.String(), packages: Type.Record(Type.String(), Type.Object({ name: Type.String(), version: Type.String() })) })

/** As `resolvePackage`. @param cache the folder of packages, which also has these answers */
export async function knownPackage (commands: HostCommands, asked: string, cache: string, signal?: AbortSignal, places: readonly string[] = SOURCES): Promise<PackageVersion> {
  const file = join(cache, '.known-packages.json')
  const sources = await stateOf(places)
  const note = parsed(await readIfThere(file))
  const packages = Value.Check(Note, note) && note.sources === sources ? note.packages : {}
  const known = Object.hasOwn(packages, asked) ? packages[asked] : undefined
  if (known !== undefined) return known
  const found = await resolvePackage(commands, asked, signal)
  // The lists may have been updated meanwhile, by us or by others: then the next call asks again.
  if (await stateOf(places) === sources) {
    await mkdir(cache, { recursive: true })
    await writeFileDurably(file, JSON.stringify({ sources, packages: { ...packages, [asked]: found } }))
  }
  return found
}

/** Changes whenever one of these files changes. */
async function stateOf (places: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const place of places) {
    for (const path of [place, ...(await namesIn(place)).sort().map((name) => join(place, name))]) {
      const facts = await stat(path).catch((error: unknown) => {
        if (hasCode(error, 'ENOENT')) return undefined
        throw error
      })
      hash.update(`${path} ${facts?.size} ${facts?.mtimeMs} ${facts?.ino}\n`)
    }
  }
  return hash.digest('hex')
}

async function namesIn (place: string): Promise<string[]> {
  try {
    return await readdir(place, { recursive: true })
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw error
  }
}

/** Undefined for a file that is not JSON. */
function parsed (text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
