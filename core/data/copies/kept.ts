// The copies of the database that are kept: each is a file and, written last, a note about it. What has no note is no copy.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { syncFolder, writeFileDurably } from '../../fs/durable.ts'
import { namesIn } from '../../fs/names-in.ts'
import { giveToOwner } from '../../fs/owner.ts'

const NoteSchema = Type.Object({
  /** its number: the order in which copies were made, independent of the clock */
  number: Type.Integer({ minimum: 1 }),
  file: Type.String({ pattern: '^[0-9]{1,9}\\.(db|sql)$' }),
  madeAt: Type.String(),
  /** version of the server that made it */
  madeBy: Type.String(),
  /** for people: what was about to change the database */
  reason: Type.String(),
  bytes: Type.Integer({ minimum: 0 }),
  sha256: Type.String(),
  /** The change is not finished: the content of the database may be neither the old nor the new one. */
  open: Type.Boolean(),
  /** the migrations that it was made before; absent in notes of servers from before this was noted, and where it was made for something else */
  pending: Type.Optional(Type.Array(Type.String()))
})

export type KeptCopy = Static<typeof NoteSchema>

const NOTE = /^([0-9]{1,9})\.json$/

export function copiesFolder (dataDir: string): string {
  return join(dataDir, 'database-copies')
}

/** Oldest first. */
export async function listCopies (dataDir: string): Promise<KeptCopy[]> {
  const folder = copiesFolder(dataDir)
  const notes = (await namesIn(folder)).filter((name) => NOTE.test(name))
  const copies = await Promise.all(notes.map(async (name) => await readNote(join(folder, name))))
  return copies.sort((a, b) => a.number - b.number)
}

/** Makes the folder, for the server alone, and removes what a kill left unfinished. */
export async function prepareCopies (dataDir: string): Promise<string> {
  const folder = copiesFolder(dataDir)
  if (await mkdir(folder, { recursive: true, mode: 0o700 }) !== undefined) await giveToOwner(folder)
  const known = new Set((await listCopies(dataDir)).flatMap(({ number, file }) => [noteName(number), file]))
  for (const name of await namesIn(folder)) if (!known.has(name)) await rm(join(folder, name), { force: true })
  return folder
}

export async function writeNote (dataDir: string, copy: KeptCopy): Promise<void> {
  const path = join(copiesFolder(dataDir), noteName(copy.number))
  await writeFileDurably(path, `${JSON.stringify(copy, null, 2)}\n`, 0o600)
  await giveToOwner(path)
}

export async function removeCopy (dataDir: string, { number, file }: KeptCopy): Promise<void> {
  const folder = copiesFolder(dataDir)
  // The note first: a copy that has a note must be complete.
  await rm(join(folder, noteName(number)))
  await syncFolder(folder)
  await rm(join(folder, file), { force: true })
}

export async function checksum (path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

function noteName (number: number): string {
  return `${number}.json`
}

async function readNote (path: string): Promise<KeptCopy> {
  const note: unknown = JSON.parse(await readFile(path, 'utf8'))
  if (!Value.Check(NoteSchema, note)) throw new Error(`${path} is no note of a copy of the database: remove it`)
  return note
}
