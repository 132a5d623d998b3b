// The servers that this user has logged in to: a JSON file of mode 0600, since it contains keys.
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'
import { Failure } from '../failure.ts'
import { reading } from '../local-file.ts'

export interface Context {
  readonly url: string
  readonly token: string
  /** PEM of the authority that signed the server's certificate, when the system does not know it */
  readonly ca?: string
}

export interface Contexts {
  readonly current?: string
  readonly contexts: Readonly<Record<string, Context>>
}

const NONE: Contexts = { contexts: {} }
const MAX_BYTES = 1024 * 1024

/** `$BERTH_CONTEXTS`, else below the user's configuration folder. */
export function contextsFile (environment: NodeJS.ProcessEnv): string {
  const named = environment['BERTH_CONTEXTS']
  if (named !== undefined && named !== '') return named
  const base = environment['XDG_CONFIG_HOME']
  return join(base === undefined || base === '' ? join(homedir(), '.config') : base, 'berth', 'contexts.json')
}

/** All contexts; none when the file does not exist. A file that others may read is refused, as ssh does with keys. */
export async function readContexts (file: string): Promise<Contexts> {
  let text: string
  try {
    const { mode, size } = await stat(file)
    if ((mode & 0o077) !== 0) throw new Failure(`${file} holds keys, and others may read it`, { hint: `chmod 600 ${file}` })
    if (size > MAX_BYTES) throw new Failure(`${file} is too large to be a list of servers`)
    text = await readFile(file, 'utf8')
  } catch (error) {
    // The home of many users that are services is /dev/null.
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return NONE
    return await reading(file, Promise.reject(error))
  }
  const found = parsed(text)
  if (found === undefined) throw new Failure(`${file} is no list of servers`, { hint: 'remove it and log in again' })
  return found
}

/** Replaces the whole file, so that a crash leaves the old one or the new one. */
export async function writeContexts (file: string, contexts: Contexts): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await replace(file, `${JSON.stringify(contexts, undefined, 2)}\n`)
  } catch (error) {
    throw new Failure(`${file} cannot be written: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

async function replace (file: string, content: string): Promise<void> {
  // A name that nobody can have prepared: in a folder that others may write to, it could be a link, or a file that they keep open.
  const making = `${file}.${randomBytes(8).toString('hex')}.making`
  try {
    await writeFile(making, content, { mode: 0o600, flag: 'wx' })
    await rename(making, file)
  } catch (error) {
    await rm(making, { force: true })
    throw error
  }
}

function parsed (text: string): Contexts | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || !('contexts' in value) || typeof value.contexts !== 'object' || value.contexts === null) return undefined
  const contexts: Record<string, Context> = {}
  for (const [name, entry] of Object.entries(value.contexts)) {
    const context = contextOf(entry)
    if (context === undefined) return undefined
    contexts[name] = context
  }
  return { contexts, ...'current' in value && typeof value.current === 'string' ? { current: value.current } : {} }
}

function contextOf (entry: unknown): Context | undefined {
  if (typeof entry !== 'object' || entry === null || !('url' in entry) || !('token' in entry)) return undefined
  const { url, token } = entry
  if (typeof url !== 'string' || typeof token !== 'string') return undefined
  return { url, token, ...'ca' in entry && typeof entry.ca === 'string' ? { ca: entry.ca } : {} }
}
