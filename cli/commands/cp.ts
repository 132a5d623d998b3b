// `berth cp`: files and folders into an instance, or out of it.
import { realpath, stat } from 'node:fs/promises'
import { basename, join, posix, resolve } from 'node:path'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { archiveEntries, writeArchive } from '../copy/archive.ts'
import type { Entry } from '../copy/entry.ts'
import { guestEntries } from '../copy/guest-read.ts'
import { writeToGuest } from '../copy/guest-write.ts'
import { localEntries } from '../copy/local-entries.ts'
import { writeLocally } from '../copy/local-write.ts'
import { placeOf, type Place } from '../copy/place.ts'
import { goesUp } from '../copy/shortest.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure, wrongUsage } from '../failure.ts'
import type { Session } from '../session.ts'
import type { Run } from '../spec.ts'

type InGuest = Extract<Place, { kind: 'instance' }>

export const run: Run = async (session, input) => {
  const from = placeOf(input.argument(0))
  const to = placeOf(input.argument(1))
  const followLinks = input.flag('followLinks')
  if (from.kind === 'instance' && to.kind !== 'instance') return await out(session, from, to, followLinks)
  if (to.kind === 'instance' && from.kind !== 'instance') return await into(session, from, to, followLinks)
  throw wrongUsage('one of both is INSTANCE:PATH, and the other is not')
}

/** What the API cannot take is named, and the rest is copied; the exit code says that it is not all. */
async function into (session: Session, from: Exclude<Place, InGuest>, to: InGuest, followLinks: boolean): Promise<number> {
  const api = await session.api()
  const isFolder = (await pathInfo(api, to)).is_dir === true
  if (from.kind === 'stream' && !isFolder) throw new Failure(`${to.instance}:${to.path} is no folder, and an archive is unpacked into one`)
  // As in docker: if the target is an existing folder, the source itself is put into it, or, with `/.`, the source's content.
  const target = from.kind === 'local' && isFolder && !from.path.endsWith('/.') ? posix.join(to.path, basename(resolve(from.path))) : to.path
  const entries = from.kind === 'stream' ? archiveEntries(process.stdin) : localEntries(from.path, followLinks)
  let code: number = EXIT.done
  const skipped = ({ path: name, kind }: Entry): void => {
    code = EXIT.failed
    if (goesUp(name)) session.complain(new Failure(`left out: ${name} leads out of what is copied`))
    else session.complain(new Failure(`left out: ${from.kind === 'local' ? join(from.path, name) : name} is ${WORDS[kind]}`, { hint: HINTS[from.kind][kind] }))
  }
  await writeToGuest(api, to.instance, target, shown(session, entries), { signal: session.interrupted, skipped })
  return code
}

const WORDS = { file: 'a file', folder: 'a folder', link: 'a symbolic link', 'hard link': 'a further name of another file', 'special file': 'neither file, folder nor link' } as const satisfies Record<Entry['kind'], string>

/** How the content comes along all the same. */
const HINTS: Readonly<Record<'local' | 'stream', Partial<Record<Entry['kind'], string>>>> = {
  local: { link: '-L copies what it points to' },
  stream: { link: 'tar -h stores what it points to', 'hard link': 'tar --hard-dereference stores a file for each name' }
}

/** A link that must not be made here is named, and the rest is copied; the exit code says that it is not all. */
async function out (session: Session, from: InGuest, to: Exclude<Place, InGuest>, followLinks: boolean): Promise<number> {
  const api = await session.api()
  const name = posix.basename(posix.normalize(from.path)) || 'root'
  const entries = shown(session, guestEntries(api, from.instance, from.path, followLinks, session.interrupted))
  if (to.kind === 'stream') {
    if (process.stdout.isTTY) throw wrongUsage('an archive is not for a terminal', 'send it to a file or to tar')
    await writeArchive(process.stdout, name, entries)
    return EXIT.done
  }
  const isFolder = await stat(to.path).then((found) => found.isDirectory(), () => false)
  const isContent = from.path.endsWith('/.')
  // The content of a folder goes into a folder that is named by a link, too. Nothing else that is copied goes through a link.
  const target = !isFolder ? to.path : isContent ? await realpath(to.path) : join(to.path, name)
  let code: number = EXIT.done
  await writeLocally(target, entries, ({ path: below, target: link }) => {
    code = EXIT.failed
    session.complain(new Failure(`left out: ${join(target, below)} is a symbolic link to ${link}, which leads out of what is copied`, { hint: below === '' ? '-L copies what it points to' : '- as the target writes an archive, which keeps it' }))
  })
  return code
}

async function * shown (session: Session, entries: AsyncIterable<Entry>): AsyncGenerator<Entry> {
  let bytes = 0
  try {
    for await (const entry of entries) {
      session.progress.bytes('copied', bytes)
      yield entry
      bytes += entry.size
    }
  } finally {
    session.progress.end()
  }
}

async function pathInfo (api: Api, { instance, path: where }: InGuest): Promise<{ readonly is_dir?: boolean }> {
  return await api.call('GET', path`/instances/${instance}/stat`, { query: { path: where, follow_links: true } })
}
