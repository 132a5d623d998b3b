// An instance at rest gives its VM's user up when another VM needs one, unless it has volumes.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { plugin as volumes } from '../../../plugins/volumes/index.ts'
import { startApp } from '../instances/app.ts'

t.test('volumes stay with the user of the VM that has written them', { skip: process.getuid?.() === 0 ? false : 'VMs have users of their own only when the server is root' }, async (t) => {
  const app = await startApp(t, { config: { vmUserCount: 2 }, plugins: [volumes] })
  const { call, dataDir, host, make } = app
  const create = async (name: string) => await call('POST', '/instances', { name, image: 'test', overlay_size: '32MB' })
  t.match(await call('POST', '/volumes', { name: 'data', size_gb: 1 }), { status: 201 })
  const id = await make('first', { volumes: [{ volume_id: 'data', mount_path: '/data' }] })
  const user = host.vm.spec.identity?.uid
  await make('second')
  t.match(await call('POST', '/instances/first/stop'), { status: 200 })
  t.match(await create('third'), { status: 409, body: { code: 'insufficient_resources' } })
  t.equal((await stat(join(dataDir, 'instances', id, 'overlay.ext4'))).uid, user)
  await call('POST', '/instances/second/stop')
  t.match(await create('third'), { status: 201 }, 'one without volumes can do without')
  t.match(await call('POST', '/instances/first/start'), { status: 200 })
  t.equal(host.vm.spec.identity?.uid, user)
})
