// The workers of a proxy, as its figures tell of them.
import { eventually } from '../../helpers/eventually.ts'
import { APART } from '../../../proxy/workers/blame.ts'
import type { TestProxy } from './proxy.ts'

export interface SeenWorker { readonly name: string, readonly pid: number, readonly isUp: boolean }

export async function figure (proxy: TestProxy, name: string): Promise<number> {
  const line = (await proxy.call('GET', '/metrics')).body.split('\n').find(text => text.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1))
}

export async function workersOf (proxy: TestProxy): Promise<SeenWorker[]> {
  const { body } = await proxy.call('GET', '/metrics')
  return [...body.matchAll(/^berth_egress_worker_pid\{worker="([^"]+)"\} (\d+)$/gm)].map(([, name = '', pid]) => {
    return { name, pid: Number(pid), isUp: body.includes(`berth_egress_worker_up{worker="${name}"} 1\n`) }
  })
}

/** Ends the worker of an address by a signal; resolves when another one has taken its place. */
export async function endWorkerOf (proxy: TestProxy, address: string, signal: NodeJS.Signals): Promise<void> {
  const { pid } = await workerOf(proxy, address)
  process.kill(pid, signal)
  await eventually('another worker takes its place', async () => (await workerOf(proxy, address)).pid !== pid, { pollMs: 10 })
}

/** Once it takes connections. */
export async function workerOf (proxy: TestProxy, address: string): Promise<SeenWorker> {
  const last = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
  return await eventually('the worker is up', async () => {
    const workers = await workersOf(proxy)
    const regular = workers.filter(({ name }) => name !== APART)
    return workers.find(({ name, isUp }) => name === String(last % regular.length) && isUp)
  }, { pollMs: 10 })
}
