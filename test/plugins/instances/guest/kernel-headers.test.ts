// Which VMs get the disk with the kernel's modules and headers: every new one unless it is asked for without, and after a change of the kernel not those that go on from memory.
import t from 'tap'
import { until } from '../crash.ts'
import { startWithTemplates } from '../templates-app.ts'

t.test('a VM has the disk of the kernel that it was booted with, also as a spare VM and after a standby', async (t) => {
  const { call, host, make, waitFor, count, wayOf } = await startWithTemplates(t)
  host.kernelHeaders = 'headers-1'
  const vmOf = (id: string) => host.vms.findLast(({ spec }) => spec.id === id)
  const diskOf = (id: string): string | undefined => vmOf(id)?.spec.disks.find((disk) => disk.id === 'headers')?.path
  const first = await make('first')
  await waitFor('first', 'Running')
  t.match(vmOf(first)?.spec.disks[2], { id: 'headers', path: '/headers/headers-1', readonly: true }, 'the third disk is /dev/vdc')
  t.equal(vmOf(first)?.workload?.kernelHeaders, '/dev/vdc')
  await until(async () => await count('spares') === 1)

  const without = await make('without', { skip_kernel_headers: true })
  t.equal(await wayOf(without), 'by a boot', 'a template with the disk is of no use')
  await waitFor('without', 'Running')
  t.same([diskOf(without), vmOf(without)?.workload?.kernelHeaders], [undefined, undefined])
  await until(async () => await count('spares') === 2)
  const second = await make('second')
  t.equal(await wayOf(second), 'from a spare VM')
  await waitFor('second', 'Running')
  t.equal(diskOf(second), '/headers/headers-1')
  t.equal(vmOf(second)?.workload?.kernelHeaders, '/dev/vdc')

  t.equal((await call('POST', '/instances/second/standby')).status, 200)
  host.kernelHeaders = 'headers-2'
  t.equal((await call('POST', '/instances/second/restore')).status, 200)
  t.equal(diskOf(second), '/headers/headers-1', 'its memory knows this one')
  for (const step of ['stop', 'start']) t.equal((await call('POST', `/instances/second/${step}`)).status, 200, step)
  await waitFor('second', 'Running')
  t.equal(diskOf(second), '/headers/headers-2')
  t.notMatch((await call('GET', '/instances/second')).text, /headers-/, 'nobody outside knows of it')
})
