// iperf3 in a real machine with limits, to an outside that is a network namespace. Run by network-limits.long.test.ts in a network namespace of its own.
import { existsSync } from 'node:fs'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../core/process/run.ts'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'
import { push } from '../helpers/images.ts'
import { iperf, makeIperfImage, obeying } from '../helpers/iperf/image.ts'
import { startPeer } from '../helpers/iperf/peer.ts'
import { createMachine } from '../helpers/machine.ts'
import { ownNetwork } from '../helpers/own-network.ts'
import { startTestServer } from '../helpers/server.ts'

const OUTSIDE = '198.51.100.2'
const PORT = 7001
/** Two limits that differ, so that one for the other shows. */
const LIMITS = { upload: 6, download: 12 } as const
/** A machine that is busy with other things may not reach a limit at once; none may ever pass it. */
const MOST_TRIES = 4

const commands = createHostCommands()
const reason = missingPrivileges() ?? (existsSync(iperf) ? undefined : 'iperf3 is missing')
if (reason === undefined) await t.test('bandwidth_upload and bandwidth_download hold within a tenth', { timeout: 900_000 }, limits)
else t.plan(0, reason)

async function limits (t: Test): Promise<void> {
  const { namespace, cidr } = ownNetwork()
  const outside = `${namespace}-out`
  t.teardown(async () => { for (const name of [namespace, outside]) if (existsSync(`/run/netns/${name}`)) await commands.run('ip', ['netns', 'delete', name]) })
  await connectOutside(outside)
  const server = await startTestServer(t, { plugins: { networking: { config: { uplink: 'wan', namespace, cidr } } } })
  const image = await push(server, await makeIperfImage(), 'network/iperf:latest')
  const peer = await startPeer(`/run/netns/${outside}`, OUTSIDE)
  t.teardown(() => peer.end())
  const guest = peer.guest(PORT)
  await createMachine(server, image, { entrypoint: [], cmd: obeying(OUTSIDE, PORT), network: { bandwidth_upload: `${LIMITS.upload}Mbps`, bandwidth_download: `${LIMITS.download}Mbps` } })
  for (const way of ['upload', 'download'] as const) {
    let megabits = 0
    for (let tries = 0; tries < MOST_TRIES && megabits < 0.9 * LIMITS[way]; tries++) megabits = await guest.measure(way)
    t.ok(megabits > 0.9 * LIMITS[way] && megabits < 1.1 * LIMITS[way], `${way}: ${megabits.toFixed(1)} of ${LIMITS[way]} Mbit/s`)
  }
}

/** An outside that this namespace, the "host", reaches through `wan`. */
async function connectOutside (outside: string): Promise<void> {
  await commands.run('ip', ['netns', 'add', outside])
  await commands.run('ip', ['-batch', '-'], { input: `link set lo up\nlink add wan type veth peer name wan netns ${outside}\naddress add 198.51.100.1/24 dev wan\nlink set wan up\n` })
  await commands.run('ip', ['-n', outside, '-batch', '-'], { input: `link set lo up\naddress add ${OUTSIDE}/24 dev wan\nlink set wan up\n` })
}
