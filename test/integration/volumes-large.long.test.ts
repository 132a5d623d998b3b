// A volume made of 1 GB of archive: the server streams it, and its memory does not grow with it.
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { startTestServer } from '../helpers/server.ts'
import { memoryOf } from '../helpers/vmm.ts'
import { end, entry } from '../helpers/raw-tar.ts'

const MIB = 2 ** 20
const PIECE = 16 * MIB
const TOTAL = 2 ** 30

t.setTimeout(1_400_000)

t.test('an archive with a file of 1 GB takes no more memory than a small one', { timeout: 900_000 }, async (t) => {
  const server = await startTestServer(t)
  // Members of gzip that follow one another are one stream, so that the test itself has little to do.
  const piece = gzipSync(randomBytes(PIECE), { level: 1 })
  async function * archive (bytes: number): AsyncGenerator<Buffer> {
    yield gzipSync(entry({ path: 'large', content: '', sizeBytes: bytes }))
    for (let sent = 0; sent < bytes; sent += PIECE) yield piece
    yield gzipSync(end)
  }
  const upload = async (name: string, bytes: number): Promise<{ rise: number, ms: number, sizeGb: number }> => {
    const before = (await memoryOf(server.pid)).rssBytes
    let most = before
    const timer = setInterval(() => {
      memoryOf(server.pid).then(({ rssBytes }) => { most = Math.max(most, rssBytes) }, () => {})
    }, 50)
    const began = performance.now()
    const answer = await fetch(`${server.url}/volumes/from-archive?name=${name}&size_gb=3`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/gzip' },
      body: Readable.toWeb(Readable.from(archive(bytes))),
      duplex: 'half'
    })
    const body: { size_gb: number } = JSON.parse(await answer.text())
    t.equal(answer.status, 201, JSON.stringify(body))
    clearInterval(timer)
    return { rise: most - before, ms: performance.now() - began, sizeGb: body.size_gb }
  }
  await upload('first', PIECE)
  const small = await upload('small', 4 * PIECE)
  const large = await upload('large', TOTAL)
  t.equal(large.sizeGb, 2, 'with what the file system needs, it is more than 1 GB')
  t.comment(`64 MB: ${Math.round(small.rise / MIB)} MiB more, ${Math.round(small.ms)} ms; 1 GB: ${Math.round(large.rise / MIB)} MiB more, ${Math.round(large.ms)} ms`)
  t.ok(large.rise < 96 * MIB, `1 GB took ${Math.round(large.rise / MIB)} MiB of memory`)
  for (const { id } of await server.sdk.volumes.list()) await server.sdk.volumes.delete(id)
})
