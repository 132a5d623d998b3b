// Chooses the server and the key: from flags, else the environment, else the chosen context, else the server of this host.
import { open, readFile } from 'node:fs/promises'
import { wrongUsage } from '../failure.ts'
import { reading } from '../local-file.ts'
import { contextsFile, readContexts, type Context } from './contexts.ts'
import type { KeyFile } from './local-peer.ts'

const DEFAULT_URL = 'http://127.0.0.1:8080'
/** the file that the first start of an installed server writes, readable by root */
export const LOCAL_KEY_FILE = '/var/lib/berth/keys/admin.key'

export interface Target {
  readonly url: URL
  readonly token: string | undefined
  /** where the key was found when nobody named it: then it goes only to a process of root's or of that file's owner */
  readonly keyFile?: KeyFile
  readonly ca: string | undefined
  /** for people: where the address came from */
  readonly origin: string
}

export interface TargetOptions {
  readonly url?: string | undefined
  readonly token?: string | undefined
  readonly tokenFile?: string | undefined
  readonly ca?: string | undefined
  readonly context?: string | undefined
}

/** The server that is meant when none is named. */
export interface LocalServer { readonly url: string, readonly keyFile: string }

const THIS_HOST: LocalServer = { url: DEFAULT_URL, keyFile: LOCAL_KEY_FILE }

/**
 * A key is sent to its own server only: that of a context to the context's, `BERTH_TOKEN` to the one of `BERTH_URL`. What is named by a flag holds for whatever server is chosen.
 */
export async function findTarget (options: TargetOptions, environment: NodeJS.ProcessEnv, local = THIS_HOST): Promise<Target> {
  const ofEnvironment = filled(environment['BERTH_URL'])
  const given = options.url ?? ofEnvironment
  const context = given !== undefined && options.context === undefined ? undefined : await chosenContext(options.context ?? filled(environment['BERTH_CONTEXT']), environment)
  const text = options.url ?? (options.context === undefined ? given : undefined) ?? context?.url ?? local.url
  const url = parsedUrl(text)
  const isOwn = (address: string | undefined): boolean => address !== undefined && parsedUrl(address).origin === url.origin
  const beside = context === undefined ? filled(environment['BERTH_TOKEN']) : undefined
  // Without BERTH_URL, the key in the environment belongs to the address that is named beside it.
  const isPaired = beside !== undefined && (ofEnvironment === undefined || isOwn(ofEnvironment))
  const named = await givenKey(options) ?? (isPaired ? beside : undefined) ?? (isOwn(context?.url) ? context?.token : undefined)
  const found = named === undefined && text === local.url ? await localKey(local.keyFile) : undefined
  const caFile = options.ca ?? filled(environment['BERTH_CA'])
  return { url, token: named ?? found?.token, ...found === undefined ? {} : { keyFile: found.file }, ca: caFile === undefined ? context?.ca : await reading(caFile, readFile(caFile, 'utf8')), origin: text === given ? 'given' : context === undefined ? 'this host' : 'context' }
}

/** An http or https address without credentials, query or fragment. */
export function parsedUrl (text: string): URL {
  let url: URL
  try {
    url = new URL(text.includes('://') ? text : `http://${text}`)
  } catch {
    throw wrongUsage(`${text} is no address of a server`, 'write it like https://berth.example.com:8080')
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw wrongUsage(`${text}: the server speaks http or https`)
  if (url.username !== '' || url.password !== '') throw wrongUsage('the server\'s address must not hold credentials', 'give the key by BERTH_TOKEN, --token-file or berth login')
  return url
}

async function chosenContext (name: string | undefined, environment: NodeJS.ProcessEnv): Promise<Context | undefined> {
  const { current, contexts } = await readContexts(contextsFile(environment))
  if (name === undefined) return current === undefined ? undefined : contexts[current]
  const context = Object.hasOwn(contexts, name) ? contexts[name] : undefined
  if (context === undefined) throw wrongUsage(`there is no context ${name}`, 'berth context ls')
  return context
}

/** The key of `--token`, or else that in the file of `--token-file`. */
export async function givenKey ({ token, tokenFile: file }: Pick<TargetOptions, 'token' | 'tokenFile'>): Promise<string | undefined> {
  return token ?? (file === undefined ? undefined : (await reading(file, readFile(file, 'utf8'))).trim())
}

/** Root needs no login on the server's own host. */
async function localKey (path: string): Promise<{ readonly token: string, readonly file: KeyFile } | undefined> {
  try {
    const handle = await open(path)
    try {
      const { uid } = await handle.stat()
      return { token: (await handle.readFile('utf8')).trim(), file: { path, owner: uid } }
    } finally {
      await handle.close()
    }
  } catch {
    return undefined
  }
}

function filled (text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : text
}
