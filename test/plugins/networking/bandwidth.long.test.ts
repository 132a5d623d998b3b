// Limits as a guest meets them: iperf3 between a guest's sockets and an outside, through a real TAP.
import { existsSync } from 'node:fs'
import t from 'tap'
import type { NetworkLimits } from '../../../plugins/networking/contract.ts'
import { createWorld, skipReason, type Machine, type World } from './world.ts'

const IPERF = '/usr/bin/iperf3'
const OUTSIDE = '198.51.100.2'
const skip = skipReason() || (existsSync(IPERF) ? false : 'iperf3 is missing')
const SECONDS = 4
/** A machine that is busy with other things may not reach a limit at once; nothing may ever pass it. */
const MOST_TRIES = 8

interface Report { readonly end: { readonly sum_received: { readonly bits_per_second: number } } }

/** Bits per second that arrived. */
async function measure (world: World, guest: Machine, ...options: readonly string[]): Promise<number> {
  const server = world.child(world.outside, [IPERF, '--server', '--one-off', '--bind', OUTSIDE, '--forceflush'])
  await new Promise<void>((resolve) => { server.stdout.on('data', (text: Buffer) => { if (text.includes('listening')) resolve() }) })
  const report = JSON.parse(await world.in(guest.namespace, IPERF, '--client', OUTSIDE, '--json', '--time', String(SECONDS), '--omit', '1', ...options)) as Report
  return report.end.sum_received.bits_per_second
}

/** The same, again for as long as it stays more than a tenth below the limit. */
async function measureLimited (bits: number, world: World, guest: Machine, ...options: readonly string[]): Promise<number> {
  let found = 0
  for (let tries = 0; tries < MOST_TRIES && found < 0.9 * bits; tries++) found = await measure(world, guest, ...options)
  return found
}

async function addGuest (world: World, limits: NetworkLimits): Promise<Machine> {
  await world.addOutside()
  const network = await world.open({ uplink: 'auto' })
  const address = await network.allocate('a')
  return await world.machine(await network.plug('a', undefined, limits, 'none'), address)
}

for (const megabits of [8, 100]) {
  t.test(`a limit of ${megabits} Mbit/s holds within a tenth, both ways`, { skip }, async (t) => {
    const world = await createWorld(t)
    const bits = megabits * 1e6
    const guest = await addGuest(world, { vcpus: 1, downloadBps: bits / 8, uploadBps: bits / 8 })
    for (const [way, ...options] of [['upload'], ['download', '--reverse']] as const) {
      const found = await measureLimited(bits, world, guest, ...options)
      t.ok(found > 0.9 * bits && found < 1.1 * bits, `${way}: ${(found / 1e6).toFixed(2)} Mbit/s`)
    }
  })
}

t.test('each way has its own limit, and no limit is none', { skip }, async (t) => {
  const world = await createWorld(t)
  const guest = await addGuest(world, { vcpus: 1, uploadBps: 2e6 })
  const upload = await measureLimited(16e6, world, guest)
  const download = await measureLimited(60e6, world, guest, '--reverse')
  t.ok(upload < 1.1 * 16e6 && upload > 0.9 * 16e6, `upload: ${(upload / 1e6).toFixed(2)} Mbit/s`)
  t.ok(download > 50e6, `download: ${(download / 1e6).toFixed(0)} Mbit/s`)
})
