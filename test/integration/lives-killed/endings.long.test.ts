// Real machines that a server deletes or puts to sleep by itself, because their time has come or nobody uses them: it is killed with kill -9 before each step of it, and the next one finishes it.
import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { look, startCounter } from '../../helpers/counter.ts'
import { killedAtEachStep } from '../../helpers/killed-at-steps.ts'
import { createShell, waitFor } from '../../helpers/machine.ts'
import { isEmpty, startPlace, TOLD, vms, type Place } from './place.ts'

const LIMIT = { timeout: 3_000_000 }

async function expiring ({ server, image }: Place): Promise<void> {
  await t.test('TTL: its time has come', LIMIT, async (t) => {
    await killedAtEachStep(t, server, {
      // The PATCH that gives it its time.
      given: 1,
      async prepare () {
        const { id } = await createShell(server, image, TOLD, { network: { enabled: false } })
        await waitFor(server, id, 'Running')
        return id
      },
      provoke: async (id) => await server.sdk.instances.update(id, { ttl: '500ms' }),
      isDone: async (id) => (await server.sdk.instances.list()).every((instance) => instance.id !== id),
      async check (t, id, step) {
        t.equal(await vms(server, id), 0, `${step}: no VM`)
        t.same((await readdir(join(server.dataDir, 'instances'))).filter((name) => name.includes(id)), [], `${step}: no file`)
      }
    })
  })
}

async function idle ({ server, image }: Place): Promise<void> {
  await t.test('auto-standby: nobody uses it', LIMIT, async (t) => {
    let nonce = ''
    let counter = 0
    await killedAtEachStep(t, server, {
      // The PATCH that gives it its policy.
      given: 1,
      async prepare () {
        const id = await startCounter(server, image, `idle-${randomBytes(4).toString('hex')}`);
        ({ nonce, counter } = await look(server, id))
        return id
      },
      provoke: async (id) => await server.sdk.instances.update(id, { auto_standby: { enabled: true, idle_timeout: '1s' } }),
      isDone: async (id) => (await server.sdk.instances.get(id)).state === 'Standby',
      async check (t, id, step) {
        t.equal(await vms(server, id), 0, `${step}: no VM`)
        await server.sdk.instances.update(id, { auto_standby: { enabled: false } })
        await server.sdk.instances.restore(id)
        const seen = await look(server, id, counter)
        t.equal(seen.nonce, nonce, `${step}: its memory is what it was`)
        t.ok(seen.counter > counter, `${step}: and it went on`)
        await server.sdk.instances.delete(id)
      }
    })
  })
}

async function main (): Promise<void> {
  const place = await startPlace(t)
  await expiring(place)
  await idle(place)
  await isEmpty(t, place)
}

t.setTimeout(3_600_000)
const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)
