// A certificate as nginx reads it: one file with its source, chain and key. PEM allows text before its first block.
import { chown, rm } from 'node:fs/promises'
import { randomBytes, X509Certificate } from 'node:crypto'
import { renameDurably, writeFileDurably } from '../../../core/fs/durable.ts'
import { readIfThere } from '../../../core/fs/read-if-there.ts'
import type { Pair } from './authority.ts'

export interface Installed {
  /** where it came from, by its first line */
  readonly source: string
  readonly issuer: string
  /** epoch `ms` */
  readonly startsAt: number
  readonly endsAt: number
  readonly text: string
}

const SOURCE = 'Berth: '

export function textOf (source: string, { certificate, key }: Pair): string {
  return `${SOURCE}${source}\n${certificate}${certificate.endsWith('\n') ? '' : '\n'}${key}`
}

/** Parses such a text; undefined when it contains no certificate. */
export function installedOf (text: string): Installed | undefined {
  try {
    const { validFrom, validTo, issuer } = new X509Certificate(text)
    const end = text.indexOf('\n')
    return {
      // Older servers, with a single source, wrote no source.
      source: text.startsWith(SOURCE) ? text.slice(SOURCE.length, end) : 'own',
      issuer: issuer.split('\n').join(', '), startsAt: Date.parse(validFrom), endsAt: Date.parse(validTo), text
    }
  } catch {
    return undefined
  }
}

export async function readInstalled (path: string): Promise<Installed | undefined> {
  const text = await readIfThere(path)
  return text === undefined ? undefined : installedOf(text)
}

/** From its creation on, only this user may read the file. */
export async function install (uid: number, path: string, text: string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await writeFileDurably(temporary, text, 0o600)
    await chown(temporary, uid, uid)
    await renameDurably(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** When it should be renewed: when a third of its time is left. */
export function dueAt ({ startsAt, endsAt }: Installed): number {
  return endsAt - (endsAt - startsAt) / 3
}
