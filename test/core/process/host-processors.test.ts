// The processors that a server may use: read from what kernels say, on folders that look like theirs.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { processorsOfHost, type ProcessorFacts } from '../../../core/process/host-processors.ts'
import { testFolder } from '../../helpers/folder.ts'

const ALLOWED = 64

/** A host of 64 processors, with these groups of version 2 and their `cpu.max`; `undefined`: the group has no such file. */
async function hostWith (t: Test, groups: Readonly<Record<string, string | undefined>>): Promise<(own: string) => ProcessorFacts> {
  const mount = testFolder(t)
  for (const [path, max] of Object.entries(groups)) {
    await mkdir(join(mount, path), { recursive: true })
    if (max !== undefined) await writeFile(join(mount, path, 'cpu.max'), `${max}\n`)
  }
  return (own) => ({ allowed: ALLOWED, cgroup: `0::${own}\n`, mountinfo: `30 23 0:26 / ${mount} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n` })
}

t.test('without a limit they are those that it may run on', async (t) => {
  const host = await hostWith(t, { '/': undefined, '/berth.service': 'max 100000' })
  for (const own of ['/', '/berth.service', '/../elsewhere']) t.equal(processorsOfHost(host(own)), ALLOWED, own)
  t.equal(processorsOfHost({ allowed: 2, mountinfo: '', cgroup: '' }), 2)
})

t.test('the least limit on the way holds, in whole processors', async (t) => {
  const host = await hostWith(t, { '/berth.slice': '800000 100000', '/berth.slice/berth.service': '125000 50000', '/berth.slice/berth.service/server': 'max 100000', '/wide.service': '9900000 100000', '/narrow.service': '5000 100000' })
  t.equal(processorsOfHost(host('/berth.slice')), 8)
  t.equal(processorsOfHost(host('/berth.slice/berth.service/server')), 2)
  t.equal(processorsOfHost(host('/wide.service')), ALLOWED, 'more than there are')
  t.equal(processorsOfHost(host('/narrow.service')), 1, 'less than one')
})
