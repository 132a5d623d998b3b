// A server that is killed at any moment leaves one proxy at most, which the next server takes over and brings in line with the VMs that run.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { findProxies } from '../../../plugins/egress/process/find.ts'
import { resolveUser } from '../../../plugins/egress/process/user.ts'
import { skipReason } from '../networking/world.ts'
import { setStage, specOf, until } from './stage.ts'

const PROGRAM = fileURLToPath(new URL('programs/server.js', import.meta.url))

t.test('whenever it is killed, the next one has exactly the policies of the VMs that run, and one proxy', { skip: skipReason(), timeout: 200_000 }, async (t) => {
  const stage = await setStage(t)
  const { world, paths, network } = stage
  const { uid } = await resolveUser(undefined, world.folder, world.commands)
  const count = async (): Promise<number> => (await findProxies(paths.folder, `/run/netns/${world.namespace}`, uid)).length
  const given = JSON.stringify({ folder: world.folder, place: await network.proxyPlace(), hostId: 'host-a' })
  // The tables, which the program does not make.
  await (await stage.server({ adopted: false })).crash()
  let highest = 0
  // From before the proxy is started to well after the first policies: a proxy takes some 400 ms to start.
  for (const [round, afterMs] of [0, 60, 120, 200, 350, 600, 900, 1500].entries()) {
    const child = spawn(process.execPath, [PROGRAM, given], { stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(child, 'exit')
    await once(child.stdout, 'data')
    await delay(afterMs)
    child.kill('SIGKILL')
    await exited
    const left = await count()
    t.ok(left <= 1, `${left} proxies after ${afterMs} ms`)
    const next = await stage.server({ adopted: false })
    const known = (await next.repository.all()).find(({ instanceId }) => instanceId === 'vm-2')
    await next.egress.adopt([{ instanceId: 'vm-2', address: '10.100.0.2', spec: specOf(next) }])
    await next.egress.authority()
    await until(async () => (await stage.client.state()).vms === 1 && next.egress.revision !== undefined)
    const { revision } = await stage.client.state()
    t.ok((revision ?? 0) > highest, `revision ${revision} after ${highest}`)
    highest = revision ?? 0
    const [row, ...others] = await next.repository.all()
    t.same(others, [])
    if (known !== undefined) t.equal(row?.epoch, known.epoch)
    t.equal(await count(), 1)
    // Every other time the next server finds one that runs.
    if (round % 2 === 0) await next.stop()
    else await next.crash()
  }
})
