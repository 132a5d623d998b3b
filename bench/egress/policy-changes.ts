// The cost of a change of one instance's policy beside a thousand others, for server and proxy: the real proxy, and this server's own connection to it; the VMs are addresses that send nothing.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { createSecrets } from '../../core/secrets/secrets.ts'
import { ControlClient } from '../../plugins/egress/control/client.ts'
import { composeVm, type Enforced } from '../../plugins/egress/policy/compose.ts'
import { Pusher } from '../../plugins/egress/policy/pusher.ts'
import { prepareSpec } from '../../plugins/egress/policy/spec.ts'
import { startProxy } from '../../test/proxy/helpers/proxy.ts'
import { createTestAuthority } from '../../test/proxy/helpers/authority.ts'
import { loopback } from '../../test/proxy/helpers/network.ts'
import { processTree } from '../../test/helpers/process-tree.ts'
import { figureOf, print } from '../harness.ts'
import { costOf, type Cost } from '../scale/held.ts'

const VMS = 1000
const CHANGES = 10
const PUSH_MS = 20_000
const note = `${VMS} VMs with a policy of one credential each, which nobody sends from; the proxy with two workers, all its processes together; ${CHANGES} changes in a row for each measurement`

/** @param before folder of another commit's build, whose proxy is measured, too */
export async function policyChanges (runs: number, before: string | undefined): Promise<void> {
  await measure('', runs)
  if (before !== undefined) await measure(' of the other build', runs, join(before, 'dist/proxy/main.js'))
}

async function measure (whose: string, runs: number, program?: string): Promise<void> {
  const proxy = await startProxy({ roots: [createTestAuthority().certificatePem], resolver: loopback(2), httpsPort: 443, httpPort: 80, ...program === undefined ? {} : { program } })
  const secrets = createSecrets(Buffer.alloc(32, 7))
  const vms = new Map(Array.from({ length: VMS }, (_, index): [string, Enforced] => [`vm-${index}`, vmOf(index, secrets, 'a-value-of-a-secret')]))
  const client = new ControlClient(join(proxy.folder, 'control.sock'))
  const compose = (vm: Enforced): ReturnType<typeof composeVm> => composeVm(vm, secrets, (error) => { throw error })
  let revision = 0
  const pusher = new Pusher({
    policies: {
      all: () => [...vms.values()].map(compose),
      one: (id) => {
        const vm = vms.get(id)
        return vm === undefined ? undefined : compose(vm)
      }
    },
    tracing: () => undefined,
    denied: async () => await Promise.resolve([]),
    nextRevision: async (above) => {
      revision = Math.max(revision, above) + 1
      return await Promise.resolve(revision)
    },
    put: async (whole) => { await client.put(whole) },
    patch: async (change) => { await client.patch(change) },
    log: pino({ level: 'silent' })
  })
  try {
    pusher.enable()
    pusher.up(null)
    await pusher.push('vm-0', PUSH_MS)
    const costs: Cost[] = []
    const ofProxy: number[] = []
    for (let run = 0; run <= runs; run++) {
      const used = processorMs(proxy.process.pid ?? 0)
      const cost = await costOf(async () => {
        for (let index = 0; index < CHANGES; index++) {
          const number = (run * CHANGES + index) % VMS
          vms.set(`vm-${number}`, vmOf(number, secrets, `value-${run}-${index}`))
          await pusher.push(`vm-${number}`, PUSH_MS)
        }
      })
      // The first one compiles what the others use.
      if (run === 0) continue
      costs.push(cost)
      ofProxy.push((processorMs(proxy.process.pid ?? 0) - used) / CHANGES)
    }
    const name = `a change of one policy at ${VMS} VMs${whose}`
    print(figureOf(`${name}, processor of the proxy`, 'ms', ofProxy, { note }))
    print(figureOf(`${name}, processor of the server`, 'ms', costs.map(({ cpu }) => cpu / CHANGES), { note }))
    print(figureOf(`${name}, time until it is in force`, 'ms', costs.map(({ wall }) => wall / CHANGES), { note }))
    print(figureOf(`${name}, longest block of the server`, 'ms', costs.map(({ block }) => block), { note }))
  } finally {
    pusher.close()
    await proxy.stop()
  }
}

function vmOf (index: number, secrets: ReturnType<typeof createSecrets>, value: string): Enforced {
  const spec = prepareSpec({
    mode: 'all',
    credentials: { API_KEY: { source: { env: 'API_KEY' }, inject: [{ hosts: ['api.good.test'], as: { header: 'Authorization', format: 'Bearer ${value}' } }] } },
    env: { API_KEY: value }
  }, secrets)
  return { instanceId: `vm-${index}`, address: `10.100.${index >> 8}.${index & 255}`, epoch: '1', spec }
}

/** Processor time of all threads of a process and of the processes that it has started. */
function processorMs (pid: number): number {
  return processTree(pid).reduce((sum, each) => sum + readdirSync(`/proc/${each}/task`).reduce((ofThreads, thread) => {
    return ofThreads + Number(readFileSync(`/proc/${each}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6
  }, 0), 0)
}
