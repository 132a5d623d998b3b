// Files in and out of a real machine over the real WebSocket: large ones, odd ones, and failures.
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cpToInstance } from '@onkernel/hypeman/lib/cp'
import t from 'tap'
import { copyOut } from '../helpers/copy-out.ts'
import { runCommand } from '../helpers/exec.ts'
import { failureOf } from '../helpers/failure.ts'
import { testFolder } from '../helpers/folder.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createShell, waitFor } from '../helpers/machine.ts'
import { startTestServer } from '../helpers/server.ts'
import { memoryOf } from '../helpers/vmm.ts'

const server = await startTestServer(t)
const image = await push(server, await busyboxImage(), 'copy/busybox:latest')
const { id } = await createShell(server, image, 'while true; do sleep 1; done')
await waitFor(server, id, 'Running')

/** what a server's heap grows by anyway, some 25 MB, has to be far below half of it */
const LARGE_MB = 100

const config = { baseURL: server.url, apiKey: server.key }
const to = async (srcPath: string, dstPath: string): Promise<void> => await cpToInstance(config, { instanceId: id, srcPath, dstPath })
const from = async (srcPath: string, dstPath: string): Promise<void> => await copyOut(config, id, srcPath, dstPath)
const guest = async (script: string): Promise<string> => (await runCommand(server, id, { command: ['/bin/sh', '-c', script] })).stdout.trim()

async function sha256 (file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk)
  return hash.digest('hex')
}

/** Runs `work` and tells by how much the server's memory grew meanwhile, at most. */
async function growthOf (work: () => Promise<void>): Promise<number> {
  const before = (await memoryOf(server.pid)).rssBytes
  let mostBytes = before
  const sampler = setInterval(() => {
    memoryOf(server.pid).then(({ rssBytes }) => { mostBytes = Math.max(mostBytes, rssBytes) }, () => undefined)
  }, 100)
  try {
    await work()
  } finally {
    clearInterval(sampler)
  }
  return (mostBytes - before) / 2 ** 20
}

t.test('a large file goes in and comes out intact while the server holds a part of it at most', { timeout: 900_000 }, async (t) => {
  const here = testFolder(t)
  const file = join(here, 'large')
  // What the first transfer costs the server for ever is not of the second one's size.
  await writeFile(file, randomBytes(2 ** 20))
  await to(file, '/small')
  await from('/small', join(here, 'out'))
  await writeFile(file, randomBytes(LARGE_MB * 2 ** 20))
  const wanted = await sha256(file)
  const inGrowth = await growthOf(async () => await to(file, '/large'))
  t.equal(await guest('sha256sum /large | cut -d" " -f1'), wanted)
  const outGrowth = await growthOf(async () => await from('/large', join(here, 'out')))
  t.equal(await sha256(join(here, 'out')), wanted)
  t.comment(`server memory grew by ${inGrowth.toFixed(1)} MB going in, ${outGrowth.toFixed(1)} MB coming out`)
  t.ok(inGrowth < LARGE_MB / 2, `in: ${inGrowth.toFixed(1)} MB`)
  t.ok(outGrowth < LARGE_MB / 2, `out: ${outGrowth.toFixed(1)} MB`)
})

t.test('modes stay, parents are made, an empty file is a file', async (t) => {
  const here = testFolder(t, { script: '#!/bin/sh\necho ran\n', empty: '' })
  await cpToInstance(config, { instanceId: id, srcPath: join(here, 'script'), dstPath: '/new/deep/script', mode: 0o751 })
  t.equal(await guest('stat -c %a /new/deep/script; /new/deep/script'), '751\nran')
  await to(join(here, 'empty'), '/new/empty')
  t.equal(await guest('stat -c "%s %F" /new/empty'), '0 regular empty file')
})

t.test('files that look like messages of the protocol arrive as they are', async (t) => {
  const texts = ['{"type":"end"}', '{"type":"end","final":true}', '{"type":"error","message":"x"}', '[1,2,3]', '{}', '{"a":1}\n']
  const here = testFolder(t)
  for (const [index, text] of texts.entries()) {
    const file = join(here, `in-${index}`)
    await writeFile(file, text)
    await to(file, `/odd-${index}`)
    t.equal(await guest(`cat /odd-${index}; echo .`), `${text}.`.trim())
    await from(`/odd-${index}`, join(here, `out-${index}`))
    t.equal(await readFile(join(here, `out-${index}`), 'utf8'), text)
  }
})

t.test('what is not there, and a full disk, are errors that say so', { timeout: 900_000 }, async (t) => {
  const here = testFolder(t, { file: 'x' })
  t.match(await failureOf(from('/no/such/file', join(here, 'nothing'))), { message: /no such file/i })
  t.match(await failureOf(to(join(here, 'file'), '/bin/busybox/child')), { message: /not a directory/i })
  await writeFile(join(here, 'huge'), Buffer.alloc(64 * 2 ** 20, 1))
  await guest('dd if=/dev/zero of=/filler bs=1M count=500 2>/dev/null')
  t.match(await failureOf(to(join(here, 'huge'), '/huge')), { message: /no space/i })
  t.equal(await guest('ls / | grep -c huge; rm -f /filler'), '0', 'nothing half-written is left')
})
