// The forwarder that guests ask, as the plugin networking starts it: behind the firewall of its namespace, with a hostile guest, a modest one, and a hostile server outside.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { eventually } from '../../helpers/eventually.ts'
import { processTree } from '../../helpers/process-tree.ts'
import { createWorld, skipReason, type World } from '../../plugins/networking/world.ts'
import type { Random } from '../fuzz.ts'
import type { GuestOrder } from '../programs/dns-guest.ts'
import { RIGHT, victimOf } from './dns-names.ts'
import { Hold } from './hold.ts'

const UPSTREAM = '198.51.100.2'
const GUEST = fileURLToPath(new URL('../programs/dns-guest.js', import.meta.url))
const SERVER = fileURLToPath(new URL('../programs/dns-upstream.js', import.meta.url))
const SEEDS = 2 ** 31
/** for 2,000 names that it keeps, and a table of 10,000 questions */
const MOST_MEMORY_KB = 64 * 1024
/** each connection of a guest is a process of its own */
const MOST_PROCESSES = 30

export interface ForwarderAttack { case (random: Random): Promise<{ readonly input: string, readonly fault?: string }> }

/** `undefined` where namespaces cannot be made. */
export async function startForwarder (atEnd: (work: () => unknown) => void): Promise<ForwarderAttack | undefined> {
  if (skipReason() !== false) return undefined
  const world = await createWorld({ teardown: atEnd })
  await world.addOutside()
  const upstream = talk(world.child(world.outside, [process.execPath, SERVER, UPSTREAM]))
  await upstream.heard()
  // A guest's share would end most cases before they begin.
  const network = await world.open({ uplink: 'auto', dns: { servers: [UPSTREAM], queriesPerSecond: 100_000 } })
  const guest = async (id: string): Promise<{ readonly host: string, readonly ask: (order: GuestOrder) => Promise<string> }> => {
    const address = await network.allocate(id)
    const machine = await world.machine(await network.plug(id, undefined, { vcpus: 1 }, 'none'), address)
    const program = talk(world.child(machine.namespace, [process.execPath, GUEST]))
    return { host: address.gateway, ask: async order => { program.say(JSON.stringify(order)); return JSON.parse(await program.heard()) } }
  }
  const [evil, modest] = [await guest('evil'), await guest('modest')]
  const isAnswered = async (name: string): Promise<string | undefined> => {
    const answer = await modest.ask({ do: 'ask', host: modest.host, name })
    return answer.endsWith(Buffer.from(RIGHT).toString('hex')) ? undefined : `another guest asked for ${name}: ${answer}`
  }
  await eventually('the forwarder answers', async () => await isAnswered('begin.fine.test') === undefined)
  const pid = Number(readFileSync(join(world.folder, 'networking/dns.pid'), 'utf8'))
  const hold = new Hold(pid)
  return {
    async case (random) {
      const seed = random.below(SEEDS)
      upstream.say(String(seed))
      await upstream.heard()
      hold.begin()
      const input = `dnsmasq, seed ${seed}: ${await evil.ask({ do: 'attack', host: evil.host, seed })}`
      const fault = sizeFault(pid) ?? hold.fault() ?? await isAnswered(victimOf(seed).name)
      return { input, ...fault === undefined ? {} : { fault } }
    }
  }
}

function sizeFault (pid: number): string | undefined {
  if (!existsSync(`/proc/${pid}`)) return 'the forwarder has ended'
  const kb = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  if (kb > MOST_MEMORY_KB) return `the forwarder has ${kb} KiB of memory`
  const count = processTree(pid).length
  return count > MOST_PROCESSES ? `the forwarder has ${count} processes` : undefined
}

interface Conversation {
  say (line: string): void
  heard (): Promise<string>
}

/** A program that answers each line with one. */
function talk (child: ReturnType<World['child']>): Conversation {
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    say (line) { child.stdin.write(`${line}\n`) },
    async heard () {
      const { value, done } = await lines.next()
      if (done === true) throw new Error('a program of the case has ended')
      return value
    }
  }
}
