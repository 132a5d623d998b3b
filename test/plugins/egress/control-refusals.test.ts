// What the server makes of a refusal on the control socket.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ControlClient, ControlRefused } from '../../../plugins/egress/control/client.ts'

t.test('a refusal says where the fault is and what is enforced; of an older proxy, its sentence does', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-control-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  let body = ''
  const server = createServer((_request, response) => { response.writeHead(409, { 'content-type': 'application/json' }).end(body) }).listen(join(folder, 'control.sock'))
  await once(server, 'listening')
  t.teardown(() => server.close())
  const client = new ControlClient(join(folder, 'control.sock'))
  const refusal = async (given: unknown): Promise<unknown> => {
    body = typeof given === 'string' ? given : JSON.stringify(given)
    const error = await client.put({ revision: 1, vms: [] }).then(() => undefined, (thrown: unknown) => thrown)
    if (!(error instanceof ControlRefused)) throw error
    const { status, message, at, revision } = error
    return { status, message, at, revision }
  }
  t.match(await refusal({ code: 'invalid_policy', message: 'words', at: { field: 'vms', index: 2 } }), { status: 409, message: 'words', at: { field: 'vms', index: 2 } })
  t.match(await refusal({ code: 'other_base', message: 'revision 3 is enforced', revision: 4 }), { revision: 4 })
  t.match(await refusal({ code: 'invalid_policy', message: 'vms[7].rules[0].header: is no name' }), { at: { field: 'vms', index: 7 } })
  t.match(await refusal({ code: 'invalid_policy', message: 'tracing: is no field of it' }), { at: { field: 'tracing' } })
  t.match(await refusal({ code: 'stale_revision', message: 'revision 12 is enforced' }), { revision: 12 })
  t.same(await refusal('no JSON'), { status: 409, message: 'it gave no reason', at: undefined, revision: undefined })
})
