// What a guest's real requests find: the credential where the rules say, the new one after a rotation, and no way out while there is no policy.
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { endProcess } from '../../../core/process/end.ts'
import { resolveUser } from '../../../plugins/egress/process/user.ts'
import { findProxies } from '../../../plugins/egress/process/find.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createTestAuthority } from '../../proxy/helpers/authority.ts'
import { skipReason, type Machine } from '../networking/world.ts'
import { setStage, specOf, until, type EgressStage, type Server } from './stage.ts'

const skip = skipReason()
/** what the world's name server answers to every question */
const ORIGIN = '203.0.113.7'
const PROGRAM = fileURLToPath(new URL('programs/origin.js', import.meta.url))

interface Scene { readonly stage: EgressStage, readonly server: Server, readonly guest: Machine, ask (path?: string): Promise<string> }

/** An origin outside that answers with the `Authorization` that it was sent. */
async function setScene (t: Test): Promise<Scene> {
  const stage = await setStage(t, { uplink: 'auto', dns: { servers: ['198.51.100.2'] } })
  const { world, network } = stage
  await world.addOutside()
  await world.addDns()
  const authority = createTestAuthority()
  const roots = join(world.folder, 'origin-roots.pem')
  await writeFile(roots, authority.certificatePem)
  await writeFile(join(world.folder, 'origin.json'), JSON.stringify(authority.issue('api.good.test')))
  await world.ip('-n', world.outside, 'address', 'add', `${ORIGIN}/32`, 'dev', 'lo')
  const origin = world.child(world.outside, [process.execPath, PROGRAM, ORIGIN, join(world.folder, 'origin.json')])
  await once(origin.stdout, 'data')
  const server = await stage.server({ config: { roots: [roots], allowPrivate: ['203.0.113.0/24'] } })
  const address = await network.allocate('a')
  const { certificate } = await server.egress.authority()
  await writeFile(join(world.folder, 'guest-roots.pem'), certificate)
  const guest = await world.machine(await network.plug('a', undefined, { vcpus: 1 }, 'all'), address)
  return {
    stage,
    server,
    guest,
    async ask (path = '/') {
      const args = ['--silent', '--show-error', '--max-time', '10', '--cacert', join(world.folder, 'guest-roots.pem'), '--resolve', 'api.good.test:443:198.18.0.1', `https://api.good.test${path}`]
      return await world.in(guest.namespace, 'curl', ...args).catch((error: unknown) => `curl ${String(error instanceof Error && 'code' in error ? error.code : error)}`)
    }
  }
}

/** of curl: the connection was ended in the handshake, reset, or refused */
const NO_WAY_OUT = /^curl (7|35|56|52)$/

t.test('the origin sees the credential from the moment that a policy is enforced until it is lifted', { skip }, async (t) => {
  const { server, guest, ask } = await setScene(t)
  t.match(await ask(), NO_WAY_OUT, 'before')
  const spec = specOf(server, 'first-value')
  await server.egress.enforce('a', guest.address.ip, spec)
  t.equal(await ask(), 'Bearer first-value')
  await server.egress.replace('a', server.egress.rotate(spec, { API_KEY: 'second-value' }))
  t.equal(await ask('/again'), 'Bearer second-value', 'rotated')
  // The line of a request is written after its last byte was sent, so the guest may be ahead of it.
  const { entries, next } = await eventually('both requests are logged', async () => {
    const page = await server.egress.audit('a', { limit: 10 })
    return page.entries.length >= 2 && page
  })
  t.match(entries, [{ host: 'api.good.test', path: '/', status: 200, injected: ['API_KEY'] }, { path: '/again', status: 200 }])
  t.same((await server.egress.audit('a', { after: next, limit: 10 })).entries, [])
  await server.egress.lift('a')
  t.match(await ask(), NO_WAY_OUT, 'after')
})

t.test('an address that becomes the host\'s own is reached no more', { skip }, async (t) => {
  const { stage, server, guest, ask } = await setScene(t)
  await server.egress.enforce('a', guest.address.ip, specOf(server, 'the-value'))
  t.equal(await ask(), 'Bearer the-value')
  stage.world.hostAddresses = ['198.51.100.1', ORIGIN]
  await server.egress.checkDenied()
  // Another revision may be on its way that was made before.
  await until(async () => /own_address/.test(await ask()))
  t.match(await ask(), /own_address/)
})

t.test('a proxy that was killed under a guest lets it out again by its policy, and by nothing else', { skip }, async (t) => {
  const { stage, server, guest, ask } = await setScene(t)
  const { world, paths } = stage
  await server.egress.enforce('a', guest.address.ip, specOf(server, 'the-value'))
  t.equal(await ask(), 'Bearer the-value')
  const { uid } = await resolveUser(undefined, world.folder, world.commands)
  for (const { identity } of await findProxies(paths.folder, `/run/netns/${world.namespace}`, uid)) await endProcess(identity)
  const began = performance.now()
  const seen: string[] = []
  await until(async () => {
    seen.push(await ask())
    return seen.at(-1) === 'Bearer the-value'
  })
  t.comment(`from SIGKILL to an answer: ${Math.round(performance.now() - began)} ms`)
  for (const answer of seen.slice(0, -1)) t.match(answer, NO_WAY_OUT)
})
