// A network for the cases of network devices: a namespace with a bridge that learns, TAPs on it, and what the cases ask of both sides.
import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import type { VmNetwork } from '../../../core/library/hypervisor.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import type { GuestLink } from '../../../plugins/guest/contract.ts'
import { eventually } from '../../helpers/eventually.ts'

const commands = createHostCommands()

/** the namespace's own address, which guests reach */
export const GATEWAY = '10.99.0.1'

export class TestNetwork {
  readonly #name: string
  #taps = 0

  private constructor (name: string) {
    this.#name = name
  }

  /** A new one, which the end of the test removes with all that is in it. */
  static async make (t: Test): Promise<TestNetwork> {
    const network = new TestNetwork(`bhv-${randomBytes(4).toString('hex')}`)
    await commands.run('ip', ['netns', 'add', network.#name])
    t.teardown(() => commands.run('ip', ['netns', 'delete', network.#name]))
    await network.#ip(['link set dev lo up', 'link add bridge type bridge', `address add ${GATEWAY}/24 dev bridge`, 'link set dev bridge up'])
    return network
  }

  get path (): string { return `/run/netns/${this.#name}` }

  /** A new TAP on the bridge. @param uid its owner */
  async tap (uid: number | undefined, mac: string): Promise<VmNetwork> {
    const tap = `tap${this.#taps++}`
    await this.#ip([`tuntap add dev ${tap} mode tap user ${uid ?? process.getuid?.() ?? 0}`, `link set dev ${tap} master bridge`, `link set dev ${tap} up`])
    return { namespace: this.path, tap, mac }
  }

  async remove ({ tap }: VmNetwork): Promise<void> {
    await this.#ip([`link del dev ${tap}`])
  }

  /** Names of all TAPs. */
  async taps (): Promise<string[]> {
    const links: Array<{ ifname: string }> = JSON.parse((await commands.run('ip', ['-n', this.#name, '-json', 'link', 'show'])).stdout)
    return links.map(({ ifname }) => ifname).filter((name) => name.startsWith('tap'))
  }

  /** Runs one of busybox's programs on this side; what it prints. */
  async run (args: readonly string[], input?: string): Promise<string> {
    const { stdout } = await commands.run('nsenter', [`--net=${this.path}`, 'busybox', ...args], { timeoutMs: 60_000, ...input === undefined ? {} : { input } })
    return stdout
  }

  async #ip (lines: readonly string[]): Promise<void> {
    await commands.run('ip', ['-n', this.#name, '-batch', '-'], { input: `${lines.join('\n')}\n` })
  }
}

/** Runs one of busybox's programs in the guest; what it prints, or why it failed. */
export async function guestRun (link: GuestLink, args: readonly string[], input = ''): Promise<string> {
  const session = link.exec({ argv: ['/bin/busybox', ...args], timeoutMs: 60_000 })
  session.stdin.end(input)
  const [out, problem, { exitCode }] = await Promise.all([text(session.stdout), text(session.stderr), session.result])
  return exitCode === 0 ? out : `${out}exit code ${exitCode}: ${problem}`
}

/** Sends `sent` over TCP to a guest that answers with the same; what comes back. */
export async function echoInGuest (network: TestNetwork, link: GuestLink, ip: string, sent: string): Promise<string> {
  const server = link.exec({ argv: ['/bin/busybox', 'nc', '-l', '-p', '7000', '-e', '/bin/busybox', 'cat'], timeoutMs: 60_000 })
  await eventually('the guest listens', async () => (await guestRun(link, ['netstat', '-tln'])).includes(':7000 '))
  const got = await network.run(['nc', ip, '7000'], sent)
  await server.result
  return got
}

/** The other way round. */
export async function echoOutside (network: TestNetwork, link: GuestLink, sent: string): Promise<string> {
  const server = network.run(['nc', '-l', '-p', '7001', '-e', 'busybox', 'cat'])
  await eventually('the namespace listens', async () => (await network.run(['netstat', '-tln'])).includes(':7001 '))
  const got = await guestRun(link, ['nc', GATEWAY, '7001'], sent)
  await server
  return got
}
