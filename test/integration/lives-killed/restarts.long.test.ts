// Real machines that a server starts again by itself, because their program has ended or is not healthy: it is killed with kill -9 before each step of it, and the next one finishes it.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type Hypeman from '@onkernel/hypeman'
import t from 'tap'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { shell } from '../../helpers/counter.ts'
import { eventually } from '../../helpers/eventually.ts'
import { killedAtEachStep } from '../../helpers/killed-at-steps.ts'
import { createShell, waitFor } from '../../helpers/machine.ts'
import type { TestServer } from '../../helpers/server.ts'
import { isEmpty, startPlace, TOLD, vms, type Place } from './place.ts'

const HEALTHY: Hypeman.HealthCheck = { type: 'exec', exec: { command: ['test', '!', '-e', '/dev/shm/ill'] }, interval: '1s', timeout: '20s', start_period: '0s', failure_threshold: 1 }
const LIMIT = { timeout: 3_000_000 }

const isRunning = async (server: TestServer, id: string, attempts: number): Promise<boolean> => {
  const { state, restart_status: status } = await server.sdk.instances.get(id)
  return state === 'Running' && (status?.attempts ?? 0) >= attempts && status?.next_attempt_at === null
}

/** Its folder as it is while a VM of it runs; a restart makes the same again. */
const files = async (server: TestServer, id: string): Promise<string[]> => (await readdir(join(server.dataDir, 'instances', id))).sort()

async function restarts ({ server, image }: Place): Promise<void> {
  await t.test('restart policy: the program ends', LIMIT, async (t) => {
    let before: string[] = []
    await killedAtEachStep(t, server, {
      given: 0,
      async prepare () {
        const { id } = await createShell(server, image, TOLD, { network: { enabled: false }, restart_policy: { policy: 'always', backoff: '1s' } })
        await waitFor(server, id, 'Running')
        before = await files(server, id)
        return id
      },
      provoke: async (id) => await shell(server, id, 'touch /dev/shm/end'),
      isDone: async (id) => await isRunning(server, id, 1),
      async check (t, id, step) {
        const { exit_code: exit, restart_status: status } = await server.sdk.instances.get(id)
        t.ok(status?.attempts === 1 || status?.attempts === 2, `${step}: ${status?.attempts} attempts: one that was begun counts`)
        t.match(status, { blocked_reason: null, last_reason: null }, step)
        t.notOk(exit, step)
        t.equal(await vms(server, id), 1, `${step}: one VM`)
        t.same(await files(server, id), before, step)
        await server.sdk.instances.delete(id)
      }
    })
  })
}

async function unhealthy ({ server, image }: Place): Promise<void> {
  await t.test('health check: the program is not healthy any more', LIMIT, async (t) => {
    const isHealthy = async (id: string): Promise<boolean> => (await server.sdk.instances.get(id)).health_status?.status === 'healthy'
    await killedAtEachStep(t, server, {
      given: 0,
      async prepare () {
        const { id } = await createShell(server, image, TOLD, { network: { enabled: false }, health_check: HEALTHY, restart_policy: { policy: 'on_failure', backoff: '1s' } })
        await eventually('it is healthy', async () => await isHealthy(id))
        return id
      },
      provoke: async (id) => await shell(server, id, 'touch /dev/shm/ill'),
      isDone: async (id) => await isRunning(server, id, 1) && await isHealthy(id),
      async check (t, id, step) {
        const { restart_status: status } = await server.sdk.instances.get(id)
        t.ok(status?.attempts === 1 || status?.attempts === 2, `${step}: ${status?.attempts} attempts: one that was begun counts`)
        t.match(status, { blocked_reason: null, last_reason: 'health_check_failed' }, step)
        t.equal(await vms(server, id), 1, `${step}: one VM`)
        await server.sdk.instances.delete(id)
      }
    })
  })
}

async function main (): Promise<void> {
  const place = await startPlace(t)
  await restarts(place)
  await unhealthy(place)
  await isEmpty(t, place)
}

t.setTimeout(3_600_000)
const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)
