// The manifest of a backup. It is written last: a folder without it is not a backup.
import { readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { hasCode } from '../errors/system-code.ts'
import { writeFileDurably } from '../fs/durable.ts'

const Common = { path: Type.String({ minLength: 1 }), mode: Type.Integer({ minimum: 0, maximum: 0o7777 }), uid: Type.Integer({ minimum: 0 }), gid: Type.Integer({ minimum: 0 }) }

const FolderEntry = Type.Object({ kind: Type.Literal('folder'), ...Common })
const LinkEntry = Type.Object({ kind: Type.Literal('link'), ...Common, target: Type.String() })
export const FileEntry = Type.Object({
  kind: Type.Literal('file'),
  ...Common,
  /** since the epoch, as text: a number would not have enough digits */
  mtimeNs: Type.Optional(Type.String({ pattern: '^[0-9]{1,19}$' })),
  /** instead, in backups of earlier versions */
  mtimeMs: Type.Optional(Type.Number({ minimum: -1e15, maximum: 1e15 })),
  bytes: Type.Integer({ minimum: 0 }),
  checksum: Type.String(),
  /** path of the entry before it whose file this is another name of (a hard link): only that one has the content in the backup */
  sameAs: Type.Optional(Type.String({ minLength: 1 }))
})

const ManifestSchema = Type.Object({
  format: Type.Literal(1),
  madeBy: Type.String(),
  madeAt: Type.String(),
  /** the data folder that was backed up, and the boot id of its machine */
  dataDir: Type.String(),
  bootId: Type.String(),
  /** of the data folder; absent in backups of earlier versions */
  owner: Type.Optional(Type.Object({ uid: Type.Integer({ minimum: 0 }), gid: Type.Integer({ minimum: 0 }) })),
  /** `path`: where an SQLite database was, below the data folder or absolute */
  database: Type.Object({ file: Type.Union([Type.Literal('database.db'), Type.Literal('database.sql')]), checksum: Type.String() }),
  /** files that changed while they were copied */
  torn: Type.Array(Type.String()),
  /** a folder stands before its content */
  entries: Type.Array(Type.Union([FolderEntry, LinkEntry, FileEntry]))
})

export type Manifest = Static<typeof ManifestSchema>
export type Entry = Manifest['entries'][number]
export type FileEntry = Static<typeof FileEntry>

/** The folder holds no complete backup, or one that this version cannot read. */
export class BackupUnusable extends Error {
  override readonly name = 'BackupUnusable'
}

/** Folder and file of a backup: the data folder's content, and the manifest. */
export const CONTENT = 'data'
const NAME = 'manifest.json'

export async function writeManifest (folder: string, manifest: Manifest): Promise<void> {
  await writeFileDurably(join(folder, NAME), `${JSON.stringify(manifest)}\n`, 0o600)
}

/** @throws BackupUnusable */
export async function readManifest (folder: string): Promise<Manifest> {
  let text: string
  try {
    text = await readFile(join(folder, NAME), 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) throw new BackupUnusable(`${folder} holds no whole backup: it has no ${NAME}`, { cause: error })
    throw error
  }
  const manifest = parsed(text)
  if (!Value.Check(ManifestSchema, manifest)) throw new BackupUnusable(`${join(folder, NAME)} cannot be read: it is damaged, or of a later version`)
  requireInside(manifest)
  return manifest
}

function parsed (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The folder of every entry must stand before it in the manifest, and no path may leave the backup, by `..` or otherwise: what is named twice could be a link and then be followed. So must the file that an entry is another name of. */
function requireInside ({ entries }: Manifest): void {
  const folders = new Set(['.'])
  const files = new Set<string>()
  const named = new Set<string>()
  for (const entry of entries) {
    const { kind, path } = entry
    if (named.has(path)) throw new BackupUnusable(`the backup names ${JSON.stringify(path)} twice`)
    named.add(path)
    const isPlain = posix.normalize(path) === path && !path.endsWith('/') && !posix.isAbsolute(path) && path !== '.' && !path.startsWith('..') && !path.includes('\0')
    if (!isPlain || !folders.has(posix.dirname(path))) throw new BackupUnusable(`the backup names ${JSON.stringify(path)}, which is in none of its folders`)
    if (kind === 'folder') folders.add(path)
    if (kind !== 'file') continue
    if (entry.sameAs === undefined) files.add(path)
    else if (!files.has(entry.sameAs)) throw new BackupUnusable(`the backup names ${JSON.stringify(path)} as the same as ${JSON.stringify(entry.sameAs)}, which is no file that it has named before`)
  }
}
