// The real proxy as fuzz targets meet it: one for all cases, and after each of them it must run without a fault of its own.
import { setArena, type Arena } from '../../proxy/helpers/arena.ts'

export interface Attack {
  readonly arena: Arena
  /** What is wrong with the proxy; `undefined` when nothing is. */
  fault (): Promise<string | undefined>
  /** What there is to know when a connection could not be opened: the error, what the proxy said last, and the guest's last lines in its audit. */
  refusal (error: unknown): Promise<string>
}

/** How many cases go by between two looks at the neighbour. */
const CASES = 50
/** Connections of guests that may be open at a time; a guest closes each after its case, and what is beyond repair is found within 10 s. */
const OPEN_AT_MOST = 600

/** Starts it. */
export async function startAttack (atEnd: (work: () => unknown) => void): Promise<Attack> {
  const arena = await setArena({ teardown: atEnd })
  const { proxy } = arena.stage
  // Many answers never end.
  arena.patienceMs = 300
  let cases = 0
  return {
    arena,
    async fault () {
      if (arena.ended() !== undefined) return `the proxy or a worker ended: ${arena.ended()}`
      if (proxy.output().includes('a fault of the proxy')) return proxy.output().slice(-3000)
      if (++cases % CASES !== 0) return undefined
      if (!await arena.neighbour()) return 'another VM is not served'
      const open = Number(/^berth_egress_connections (\d+)$/m.exec((await proxy.call('GET', '/metrics')).body)?.[1])
      return open <= OPEN_AT_MOST ? undefined : `${open} connections of guests that have gone are open`
    },
    async refusal (error) {
      const lines = await proxy.audit(`vm-${arena.stage.guest}`)
      return `no connection: ${String(error)}\n${arena.ended() ?? 'the proxy and its workers run'}\n${proxy.output().slice(-1000)}\n${JSON.stringify(lines.slice(-3))}`
    }
  }
}
