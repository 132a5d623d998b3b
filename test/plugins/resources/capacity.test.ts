// What a host has, as found and as configured.
import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import t from 'tap'
import { Value } from 'typebox/value'
import { withDefaults } from '../../../core/config/defaults.ts'
import { totalMemory } from '../../../core/process/host-memory.ts'
import { processorsOfHost } from '../../../core/process/host-processors.ts'
import { limitsOf } from '../../../plugins/resources/capacity.ts'
import { ResourcesConfig } from '../../../plugins/resources/config.ts'
import { resolveSettings, type Settings } from '../../../plugins/resources/settings.ts'

function settingsOf (given: object): Settings {
  const config = withDefaults({ ...ResourcesConfig }, given)
  Value.Assert(ResourcesConfig, config)
  return resolveSettings(config)
}

t.test('what is not configured is found', async (t) => {
  const { cpu, memory, disk, diskIo, freeDiskBytes } = await limitsOf(settingsOf({}), tmpdir(), {})
  t.same(cpu, { capacity: processorsOfHost(), limit: processorsOfHost() * 4, ratio: 4, source: 'detected' })
  t.equal(memory.capacity, totalMemory())
  t.match(memory, { limit: memory.capacity, ratio: 1, source: 'detected' })
  const { blocks, bsize, bavail } = await statfs(tmpdir())
  t.same(disk, { capacity: blocks * bsize, limit: blocks * bsize, ratio: 1, source: 'detected' })
  t.ok(freeDiskBytes !== undefined && freeDiskBytes <= bavail * bsize, 'less what must stay free')
  t.equal((await limitsOf(settingsOf({ overcommit: { disk: false } }), tmpdir(), {})).freeDiskBytes, undefined)
  t.equal(diskIo, undefined, 'nobody knows what a disk can do before it is tried')
})

t.test('what is configured holds, less the reserve, as often as the ratio says', async (t) => {
  const settings = settingsOf({
    capacity: { cpu: 8, memory: '16GB', disk: '1TB', diskIo: '1GB/s' },
    reserve: { cpu: 2, memory: '1GB', disk: '2TB' },
    oversubscription: { cpu: 2, memory: 1.5, network: 3, diskIo: 2 }
  })
  t.same(await limitsOf(settings, '/', { downloadBps: 100, uploadBps: 200 }), {
    cpu: { capacity: 8, limit: 12, ratio: 2, source: 'configured' },
    memory: { capacity: 16 * 2 ** 30, limit: 22.5 * 2 ** 30, ratio: 1.5, source: 'configured' },
    disk: { capacity: 2 ** 40, limit: 0, ratio: 1, source: 'configured' },
    freeDiskBytes: 0,
    download: { capacity: 100, limit: 300, ratio: 3, source: 'configured' },
    upload: { capacity: 200, limit: 600, ratio: 3, source: 'configured' },
    diskIo: { capacity: 2 ** 30, limit: 2 ** 31, ratio: 2, source: 'configured' }
  })
})

const refused: readonly [name: string, config: object][] = [
  ['no processors', { capacity: { cpu: 0 } }],
  ['half a processor', { capacity: { cpu: 1.5 } }],
  ['memory that is no size', { capacity: { memory: 'much' } }],
  ['a disk that is no size', { capacity: { disk: '-1GB' } }],
  ['a rate that is a size', { capacity: { diskIo: '1GB' } }],
  ['a rate of nothing', { capacity: { diskIo: '0MB/s' } }],
  ['a ratio of nothing', { oversubscription: { cpu: 0 } }],
  ['a ratio that is none', { oversubscription: { memory: -1 } }],
  ['an unknown ratio', { oversubscription: { gpu: 2 } }],
  ['a reserve that is none', { reserve: { memory: '1Z' } }],
  ['an unknown mode', { cgroups: { mode: 'on' } }],
  ['a group above all groups', { cgroups: { parent: '/a/../../b' } }],
  ['a group that is no path', { cgroups: { parent: '/a b' } }],
  ['no processor time at all', { cgroups: { cpuPerVcpu: 0 } }],
  ['too few threads', { cgroups: { pids: 1 } }]
]
for (const [name, config] of refused) {
  t.test(`${name} is refused`, async (t) => {
    t.throws(() => settingsOf(config))
  })
}
