// Archives as they are sent for volumes: each is unpacked inside of its folder or refused with a reason, and whatever it is made of stays bounded.
import { mkdir, mkdtemp, readdir, readlink, realpath, rm, lstat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, sep } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { BerthError } from '../../../core/errors/define.ts'
import { unpack } from '../../../plugins/volumes/archive/unpack.ts'
import type { Fuzz, Random } from '../fuzz.ts'
import { Hold } from '../helpers/hold.ts'
import { tarBytes } from '../helpers/tar-bytes.ts'
import { watchUnhandled } from '../helpers/unhandled.ts'

const LIMITS = { sizeGb: 0.01, maxEntries: 40 }
const MAX_BYTES = LIMITS.sizeGb * 2 ** 30 + 4096 * LIMITS.maxEntries
const SHOWN = 6_000

function zipped (random: Random, archive: Buffer): Buffer {
  const way = random.below(12)
  if (way === 0) return random.mutate(gzipSync(archive), 3)
  if (way === 1) return gzipSync(archive).subarray(0, random.below(200))
  if (way === 2) return Buffer.concat([gzipSync(archive), random.pick([Buffer.from('x'), gzipSync('x'), gzipSync(Buffer.alloc(2 ** 24)), Buffer.alloc(512)])])
  if (way === 3) return archive
  return gzipSync(archive, { level: 1 })
}

/** What is wrong with what stands in a folder: a link that leads out of it, or something that is no file, folder or link. */
async function contentFault (folder: string): Promise<string | undefined> {
  for (const name of await readdir(folder, { recursive: true })) {
    const path = join(folder, name)
    const facts = await lstat(path)
    if (facts.isSymbolicLink()) {
      const target = await readlink(path)
      const end = await realpath(path).catch(() => join(dirname(path), target))
      if (target.startsWith('/') || !`${end}${sep}`.startsWith(`${folder}${sep}`)) return `${name} leads to ${target}`
    } else if (!facts.isFile() && !facts.isDirectory()) return `${name} is neither file nor folder`
  }
  return undefined
}

export const fuzz: Fuzz = {
  seeds: [],
  async start (atEnd) {
    const root = await realpath(await mkdtemp(join(tmpdir(), 'berth-archives-')))
    atEnd(async () => { await rm(root, { recursive: true, force: true }) })
    const unhandled = watchUnhandled(atEnd)
    const hold = new Hold()
    return async random => {
      const archive = tarBytes(random)
      const pieces = random.pieces(zipped(random, archive))
      const folder = join(root, 'a', 'b', 'inside')
      await mkdir(folder, { recursive: true, mode: 0o700 })
      hold.begin()
      let fault: string | undefined
      let unpacked = 0
      const source = Readable.from(pieces.filter(piece => piece.length > 0), { objectMode: false })
      try {
        const { sizeGb } = await unpack(source, folder, LIMITS, { signal: new AbortController().signal, count: bytes => { unpacked += bytes }, stop () {} })
        if (sizeGb > LIMITS.sizeGb) fault = `the volume has ${sizeGb} GB`
      } catch (error) {
        if (!(error instanceof BerthError) || error.statusCode !== 400) fault = error instanceof Error ? error.stack : String(error)
      }
      source.destroy()
      fault ??= hold.fault() ?? unhandled() ?? await contentFault(folder)
      if (unpacked > MAX_BYTES) fault ??= `${unpacked} bytes were written`
      const beside = [...await readdir(root), ...await readdir(join(root, 'a')), ...await readdir(join(root, 'a', 'b'))].join()
      if (beside !== 'a,b,inside') fault ??= `beside of the folder there is ${beside}`
      await rm(join(root, 'a'), { recursive: true, force: true })
      return { input: pieces.map(piece => piece.toString('base64')).join(' ').slice(0, SHOWN), ...fault === undefined ? {} : { fault } }
    }
  }
}
