// The key that a fresh server makes for its operator.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createId } from '@paralleldrive/cuid2'
import { writeFileDurably } from '../fs/durable.ts'
import { idOfKey, makeKey } from './key-text.ts'
import type { ManagedApiKeys } from './keys.ts'
import { readIfThere } from '../fs/read-if-there.ts'

const FULL_ACCESS = ['*']

export interface AdminKey {
  /** the file that holds the key, 0600 */
  readonly path: string
  /** whether this start made it */
  readonly created: boolean
}

/**
 * Makes the admin key at the first start, in `<dataDir>/keys/admin.key`. Later starts do not make it again: a revoked key stays revoked, and
 * a file that the operator has put away stays away as long as some key has full access.
 */
export async function ensureAdminKey (keys: ManagedApiKeys, dataDir: string): Promise<AdminKey> {
  const folder = join(dataDir, 'keys')
  const path = join(folder, 'admin.key')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const written = await readKeyFile(path)
  if (written !== undefined) {
    // The file is written first: a start that was killed in between leaves a key that only has to be stored.
    if (await keys.find(written.key) === undefined) await store(keys, written)
    return { path, created: false }
  }
  if (await hasFullAccess(keys)) return { path, created: false }
  const id = createId()
  const key = makeKey(id)
  await writeFileDurably(path, `${key}\n`, 0o600)
  await store(keys, { id, key })
  return { path, created: true }
}

interface WrittenKey { readonly id: string, readonly key: string }

async function readKeyFile (path: string): Promise<WrittenKey | undefined> {
  const text = await readIfThere(path)
  if (text === undefined) return undefined
  const key = text.trim()
  const id = idOfKey(key)
  if (id === undefined) throw new Error(`${path} holds no API key; remove the file or put the key back`)
  return { id, key }
}

async function store (keys: ManagedApiKeys, { id, key }: WrittenKey): Promise<void> {
  await keys.create({ id, key, name: 'admin', scopes: FULL_ACCESS })
}

async function hasFullAccess (keys: ManagedApiKeys): Promise<boolean> {
  const now = Date.now()
  return (await keys.list()).some((record) => record.revokedAt === null && (record.expiresAt ?? Infinity) > now && record.scopes.includes('*'))
}
