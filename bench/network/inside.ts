// The measuring part of the network benchmark, a program in a network namespace of its own: a server whose way out is a pair of devices to the outside.
import { join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { boot, startBerth, type Berth } from '../berth.ts'
import { figureOf, print, series, takeTurns } from '../harness.ts'
import { templatesOff } from '../templates.ts'
import { bareAddress, bootOnBareNetwork, makeBareNetwork } from './bare.ts'
import { makeIperfImage, obeying } from '../../test/helpers/iperf/image.ts'
import type { InsideOptions } from './main.ts'
import { startPeer, type Guest, type Way } from '../../test/helpers/iperf/peer.ts'

const size = '256MB'
const uplink = 'wan'
const outsideAddress = '198.51.100.2'
const limitMegabits = 40
/** the measurements hardly differ */
const mostLimitedRuns = 3
const ways: readonly Way[] = ['upload', 'download']

async function main ({ folder, runs, namespaces }: InsideOptions): Promise<void> {
  const commands = createHostCommands()
  await connectOutside(commands, namespaces.outside)
  await makeBareNetwork(commands, namespaces.bare, namespaces.bareOutside)
  const networking = { config: { namespace: namespaces.guests, uplink } }
  const berth = await startBerth({ folder: join(folder, 'server'), plugins: { ...templatesOff(), networking } }, await makeIperfImage())
  const [outside, bareOutside] = [await startPeer(`/run/netns/${namespaces.outside}`, outsideAddress), await startPeer(`/run/netns/${namespaces.bareOutside}`, bareAddress)]
  try {
    const [free, limited, bare] = [outside.guest(7001), outside.guest(7002), bareOutside.guest(7001)]
    const model = await boot(berth, { name: 'free', size, argv: obeying(outsideAddress, 7001) })
    const vm = await bootOnBareNetwork({ commands, berth, model, folder, namespace: namespaces.bare, argv: obeying(bareAddress, 7001) })
    try {
      await compareFree(free, bare, runs)
    } finally {
      await vm.end()
    }
    await bootLimited(berth)
    await compareLimited(limited, runs)
  } finally {
    outside.end()
    bareOutside.end()
    await berth.server.stop()
  }
}

async function connectOutside (commands: HostCommands, outside: string): Promise<void> {
  await commands.run('ip', ['-batch', '-'], { input: `link set dev lo up\nlink add ${uplink} type veth peer name ${uplink} netns ${outside}\naddress add 198.51.100.1/24 dev ${uplink}\nlink set dev ${uplink} up\n` })
  await commands.run('ip', ['-n', outside, '-batch', '-'], { input: `link set dev lo up\naddress add ${outsideAddress}/24 dev ${uplink}\nlink set dev ${uplink} up\n` })
}

async function bootLimited (berth: Berth): Promise<void> {
  const bandwidth = `${limitMegabits}Mbps`
  await boot(berth, { name: 'limited', size, argv: obeying(outsideAddress, 7002), network: { bandwidth_upload: bandwidth, bandwidth_download: bandwidth } })
}

async function compareFree (free: Guest, bare: Guest, runs: number): Promise<void> {
  for (const way of ways) {
    const [ours, theirs] = [series(way), series(`${way}, the same QEMU on a bare TAP and bridge`)]
    await takeTurns({ runs, sides: [async (_run, keep) => keep(ours, await free.measure(way)), async (_run, keep) => keep(theirs, await bare.measure(way))] })
    print(figureOf(`${way} of an instance without a limit`, 'Mbit/s', ours.values, { other: theirs, ratioAtLeast: 0.8, note: 'ours through rules, routes, the way out of the namespace and the masquerading host; theirs through one bridge; the outside is a veth pair away from either' }))
  }
}

async function compareLimited (limited: Guest, runs: number): Promise<void> {
  for (const way of ways) {
    const ours = series(`${way} of an instance with a limit`)
    await takeTurns({ runs: Math.min(runs, mostLimitedRuns), warmUps: 0, sides: [async (_run, keep) => keep(ours, await limited.measure(way))] })
    print(figureOf(ours.name, 'Mbit/s', ours.values, { other: { name: 'the limit', values: [limitMegabits] }, ratioAtLeast: 0.9, ratioAtMost: 1.1, note: 'what TCP carries, without headers' }))
  }
}

await main(JSON.parse(process.argv[2] ?? '') as InsideOptions)
process.exit(0)
