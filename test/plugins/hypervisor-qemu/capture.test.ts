// A capture of a QEMU that its guest may control: this test speaks in its place, over its control connection and into the socket of the capture.
import { readdir } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { duplexPair } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { readIdentity } from '../../../core/process/identity.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { connectUnix } from '../../../core/process/unix-socket.ts'
import { createQemuImaging } from '../../../plugins/hypervisor-qemu/capture.ts'
import { openQmp } from '../../../plugins/hypervisor-qemu/client.ts'
import { makeHandle } from '../../../plugins/hypervisor-qemu/handle.ts'
import { CAPTURE_SOCKET } from '../../../plugins/hypervisor-qemu/run-folder.ts'
import { testFolder } from '../../helpers/folder.ts'

const TIMEOUT_MS = 3000
const PAGE = 4096
const COMPLETED = '{"event":"MIGRATION","data":{"status":"completed"}}\n'
const word = (value: number): Buffer => { const bytes = Buffer.alloc(8); bytes.writeBigUInt64BE(BigInt(value)); return bytes }
const int = (value: number): Buffer => word(value).subarray(4)
const name = (text: string): Buffer => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)])
const beginning = Buffer.concat([
  int(0x5145564d), int(3), Buffer.of(7), int(3), Buffer.from('q35'), Buffer.of(5), name('configuration/capabilities'), int(1), int(1), name('x-ignore-shared'),
  Buffer.of(1), int(2), name('ram'), int(0), int(4), word(PAGE | 4), name('memory'), word(PAGE), word(0), word(0x10), Buffer.of(0x7e), int(2),
  Buffer.of(2), int(2)
])
const page = Buffer.concat([word(8), name('memory'), Buffer.alloc(PAGE, 1)])

interface Hostile {
  /** what it does when it is told to send the VM */
  readonly migrate: (connect: () => Promise<Socket>, say: (line: string) => void) => Promise<void>
  /** commands that it does not answer */
  readonly ignores?: string
}

async function captured (t: Test, { migrate, ignores }: Hostile): Promise<{ readonly error: unknown, readonly commands: readonly string[], readonly files: readonly string[] }> {
  const directory = testFolder(t, {})
  const connect = async (): Promise<Socket> => {
    const stream = await connectUnix(directory, CAPTURE_SOCKET)
    t.teardown(() => stream.destroy())
    return stream.on('error', () => {})
  }
  const [near, far] = duplexPair()
  const seen: string[] = []
  far.on('error', () => {})
  far.write('{"QMP":{"version":{"qemu":{"micro":0,"minor":0,"major":10}},"capabilities":[]}}\n')
  far.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().trim().split('\n')) {
      const { execute, id }: { readonly execute: string, readonly id: number } = JSON.parse(line)
      seen.push(execute)
      if (execute === ignores && seen.includes('stop')) continue
      far.write(`{"return":${execute === 'query-status' ? '{"status":"running","running":true}' : '{}'},"id":${id}}\n`)
      if (execute === 'migrate') migrate(connect, (said) => { far.write(said) }).catch((failure: unknown) => { t.fail(String(failure)) })
    }
  })
  const qmp = await openQmp(near, 1000)
  const identity = readIdentity(process.pid)
  if (identity === undefined) throw new Error('this process is not there')
  const image = { key: '', shape: {}, vcpus: 1, memoryBytes: 2 ** 20 }
  const handle = makeHandle({ driver: 'qemu', process: identity, directory, vmmVersion: '10.0.0', image, balloonBytes: undefined })
  const imaging = createQemuImaging({ handle, facts: image, commands: createHostCommands(), timeoutMs: TIMEOUT_MS, control: () => qmp, refresh: async (timeoutMs) => { await qmp.execute('query-status', {}, timeoutMs) } })
  const capture = imaging.capture({ statePath: join(directory, 'state'), memoryPath: join(directory, 'memory') })
  const error = await Promise.race([capture.catch((failure: unknown) => failure), sleep(20 * TIMEOUT_MS, 'nothing', { ref: false })])
  qmp.close()
  return { error, commands: seen, files: (await readdir(directory)).filter((file) => file !== CAPTURE_SOCKET) }
}

await t.test('a QEMU that says that it has sent its VM, and keeps the stream open, is given up in time, and its guest goes on', async (t) => {
  const { error, commands, files } = await captured(t, {
    async migrate (connect, say) {
      (await connect()).write(beginning)
      say(COMPLETED)
    }
  })
  t.match(error, { code: 'qmp_timeout', message: /its migration/ })
  t.equal(commands.at(-2), 'cont')
  t.same(files, [])
})

await t.test('a QEMU that sends the same page without end is given up in time, and its guest goes on', async (t) => {
  const { error, commands, files } = await captured(t, {
    async migrate (connect, say) {
      const stream = await connect()
      stream.write(beginning)
      say(COMPLETED)
      const over = new Promise((resolve) => { stream.once('close', resolve) })
      while (!stream.destroyed) if (!stream.write(page)) await Promise.race([new Promise((resolve) => { stream.once('drain', resolve) }), over])
    }
  })
  t.match(error, { code: 'qmp_timeout', message: /its migration/ })
  t.equal(commands.at(-2), 'cont')
  t.same(files, [])
})

await t.test('a QEMU that says that it has sent its VM, and sends nothing, is given up in time', async (t) => {
  const { error, commands } = await captured(t, { migrate: async (_connect, say) => { await Promise.resolve(say(COMPLETED)) } })
  t.match(error, { code: 'vm_capture_failed' })
  t.equal(commands.at(-2), 'cont')
})

await t.test('a QEMU that stops its guest and tells nothing any more is given up in time', async (t) => {
  const { error } = await captured(t, { migrate: async () => {}, ignores: 'query-status' })
  t.match(error, { message: /could be neither captured nor resumed|did not answer query-status/ })
})
