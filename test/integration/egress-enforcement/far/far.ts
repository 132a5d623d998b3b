// The far side as a test has it: its program in a namespace of its own, joined to the "host" by the device that is Berth's way out, and an account of every packet that arrives there.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { createHostCommands } from '../../../../core/process/run.ts'
import { ADDRESSES, HOST, NAME_SERVER, type Order, type Place, type Seen } from './contract.ts'

/** The host's device on the way out. */
export const WAN = 'wan'

// Before anything else looks at a packet. `six` counts what IPv6 has that is not the two devices' own talk about neighbours and groups.
const ACCOUNT = `table inet account {
  set packets { type ipv4_addr . inet_proto . inet_service; flags dynamic; }
  set opens { type ipv4_addr . inet_service; flags dynamic; }
  set pings { type ipv4_addr; flags dynamic; }
  set sources { type ipv4_addr; flags dynamic; }
  counter six { }
  chain arriving {
    type filter hook prerouting priority raw; policy accept;
    iifname != "${WAN}" accept
    meta nfproto ipv6 ip6 daddr != ff00::/8 icmpv6 type != { nd-neighbor-solicit, nd-neighbor-advert } counter name six accept
    meta nfproto ipv6 udp dport 0-65535 counter name six accept
    meta nfproto ipv6 accept
    update @sources { ip saddr }
    meta l4proto { tcp, udp } update @packets { ip daddr . meta l4proto . th dport }
    tcp flags & (syn | ack) == syn update @opens { ip daddr . tcp dport }
    meta l4proto icmp update @pings { ip daddr }
  }
}
`

export interface Far extends Place {
  seen (): Promise<Seen[]>
  asked (): Promise<string[]>
  streams (): Promise<string[]>
  /** what arrived since the last `forget`: `tcp 128.66.0.10:443`, `ping 128.66.0.66`, `from 128.66.0.1`, `ipv6` */
  arrived (): Promise<string[]>
  /** where a TCP connection was begun since the last `forget`, as `128.66.0.10:443`: not the last packets of one of before, which the kernel sends and repeats by itself */
  opened (): Promise<string[]>
  forget (): Promise<void>
}

interface Listed { readonly nftables: readonly { readonly set?: { readonly name: string, readonly elem?: readonly unknown[] }, readonly counter?: { readonly packets: number } }[] }

/** Joins the namespace that this process is in with a far side; the test's end ends it. */
export async function openFar (t: Pick<Test, 'teardown'>): Promise<Far> {
  const program = fileURLToPath(new URL('program.js', import.meta.url))
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', '--net', process.execPath, program], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  })
  const tell = createTeller(child)
  // It is in its own namespace as soon as it obeys.
  await tell({ do: 'seen' })
  const { run } = createHostCommands()
  const there = [`--net=/proc/${child.pid ?? 0}/ns/net`]
  await connect(child.pid ?? 0)
  await run('nsenter', [...there, 'nft', '-f', '-'], { input: ACCOUNT })
  const place = await tell({ do: 'start' }) as Place
  const account = async (): Promise<Listed> => JSON.parse((await run('nsenter', [...there, 'nft', '--json', 'list', 'table', 'inet', 'account'])).stdout) as Listed
  return {
    ...place,
    seen: async () => await tell({ do: 'seen' }) as Seen[],
    asked: async () => await tell({ do: 'asked' }) as string[],
    streams: async () => await tell({ do: 'streams' }) as string[],
    arrived: async () => linesOf(await account()),
    opened: async () => (await account()).nftables.flatMap(({ set }) => set?.name === 'opens' ? set.elem ?? [] : []).map((element) => fieldsOf(element).join(':')).sort(),
    forget: async () => {
      await run('nsenter', [...there, 'nft', '-f', '-'], { input: 'flush set inet account packets\nflush set inet account opens\nflush set inet account pings\nflush set inet account sources\nreset counter inet account six\n' })
    }
  }
}

function linesOf ({ nftables }: Listed): string[] {
  const words = { packets: ([address, protocol, port]: readonly unknown[]) => `${String(protocol)} ${String(address)}:${String(port)}`, pings: ([address]: readonly unknown[]) => `ping ${String(address)}`, sources: ([address]: readonly unknown[]) => `from ${String(address)}` }
  return nftables.flatMap(({ set, counter }) => [
    ...counter !== undefined && counter.packets > 0 ? ['ipv6'] : [],
    ...Object.entries(words).filter(([name]) => name === set?.name).flatMap(([, word]) => (set?.elem ?? []).map((element) => word(fieldsOf(element))))
  ]).sort()
}

/** An element of one field is itself, one of several is a list below `concat`. */
function fieldsOf (element: unknown): readonly unknown[] {
  const fields: unknown = typeof element === 'object' && element !== null && 'concat' in element ? element.concat : [element]
  return Array.isArray(fields) ? fields : []
}

async function connect (pid: number): Promise<void> {
  const { run } = createHostCommands()
  await run('ip', ['-batch', '-'], { input: `link set lo up\nlink add ${WAN} type veth peer name ${WAN} netns ${pid}\naddress add ${HOST}/24 dev ${WAN}\naddress add 2001:db8:66::1/64 dev ${WAN} nodad\nlink set ${WAN} up\n` })
  const there = ['link set lo up', ...ADDRESSES.map((address) => `address add ${address}/24 dev ${WAN}`), `address add 2001:db8:66::66/64 dev ${WAN} nodad`, `link set ${WAN} up`, '']
  await run('nsenter', [`--net=/proc/${pid}/ns/net`, 'ip', '-batch', '-'], { input: there.join('\n') })
  await run('ip', ['-batch', '-'], { input: `route add default via ${NAME_SERVER}\nroute add default via 2001:db8:66::66\n` })
}

function createTeller (child: ChildProcess): (order: Order) => Promise<unknown> {
  const waiting = new Map<number, { resolve (answer: unknown): void, reject (error: Error): void }>()
  let last = 0
  child.on('message', ({ id, answer, error }: { readonly id: number, readonly answer?: unknown, readonly error?: string }) => {
    const asker = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) asker?.resolve(answer)
    else asker?.reject(new Error(error))
  })
  child.on('exit', (code, signal) => { for (const { reject } of waiting.values()) reject(new Error(`the far side ended with ${code ?? signal ?? ''}`)) })
  return async (order) => await new Promise((resolve, reject) => {
    const id = ++last
    waiting.set(id, { resolve, reject })
    child.send({ id, order })
  })
}
