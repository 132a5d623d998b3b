// A VM behind a VMM's REST API: its guest's stream.
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { makeHandle } from '../../../../core/library/vmm/handle.ts'
import { RestVm } from '../../../../core/library/vmm/rest-vm.ts'
import { runFolder } from '../../../../core/library/vmm/run-folder.ts'
import { readIdentity } from '../../../../core/process/identity.ts'

const ANSWER_MS = 20

await t.test('of streams that are opened at once each reaches the guest after the one before it, so that the last caller has the one that the guest keeps', async (t) => {
  const path = await mkdtemp(join(tmpdir(), 'berth-vm-'))
  let [unanswered, most] = [0, 0]
  let kept: Socket | undefined
  // Like a guest, it ends a stream when another one comes.
  const guest = createServer((socket) => {
    most = Math.max(most, ++unanswered)
    kept?.destroy()
    kept = socket.on('error', () => {})
    setTimeout(() => {
      unanswered--
      socket.write('OK 1073741824\n')
    }, ANSWER_MS)
  })
  const folder = runFolder(path, 'test', 'test')
  await mkdir(folder.room)
  const api = createServer()
  for (const [server, name] of [[guest, 'v'], [api, 'a']] as const) {
    server.listen(join(folder.room, name))
    await once(server, 'listening')
  }
  const identity = readIdentity(process.pid)
  if (identity === undefined) throw new Error('this process is not there')
  const vm = new RestVm(
    {
      handle: makeHandle({ driver: 'test', process: identity, directory: path, vmmVersion: '1', image: { key: '', shape: {}, vcpus: 1, memoryBytes: 1 } }),
      identity, folder, vsock: 'v', api: 'a', ask: async () => await Promise.resolve({ status: 'running' })
    },
    { status: 'running' },
    { heartbeat: { intervalMs: 60_000, deadlineMs: 60_000 }, guestTimeoutMs: 5000, onError: (error) => { t.error(error) } }
  )
  t.teardown(async () => {
    vm.release()
    kept?.destroy()
    guest.close()
    api.close()
    await rm(path, { recursive: true, force: true })
  })
  const streams = await Promise.all([vm.connect(), vm.connect(), vm.connect()])
  t.equal(most, 1, 'one asks at a time')
  t.same(streams.map(({ destroyed }) => destroyed), [true, true, false])
})
