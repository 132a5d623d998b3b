// Differences between revisions: they mean what the whole would mean, for the VMs that they name and for the others, or they are refused and nothing has changed.
import t, { type Test } from 'tap'
import { PolicyBook } from '../../proxy/workers/policy-book.ts'
import { ask, closesWithin, exchangeBytes, openPlain, openTls } from './helpers/guest.ts'
import { loopback } from './helpers/network.ts'
import { SECRET, vmPolicy, type TestProxy } from './helpers/proxy.ts'
import { setStage, type Stage } from './helpers/setup.ts'
import { endWorkerOf } from './helpers/workers.ts'

const HOST = 'api.good.test'
const [ONE, OTHER, THIRD, FOURTH] = [loopback(10), loopback(11), loopback(12), loopback(13)]

/** of these three VMs */
const FIRST = 10

async function stageWith (t: Test): Promise<{ stage: Stage, heard: () => string | undefined }> {
  const stage = await setStage(t, { workers: 2 })
  let authorization: string | undefined
  await stage.origin(100, { streaming: (request, response) => { authorization = request.headers.authorization; response.end('hello from the origin') } })
  const vms = [vmPolicy(ONE, [{}]), vmPolicy(OTHER, [{}]), vmPolicy(THIRD, [{}])]
  const { status } = await stage.proxy.call('PUT', '/policy', { revision: FIRST, vms })
  if (status !== 200) throw new Error(`the first policy was answered with ${status}`)
  return { stage, heard: () => authorization }
}

async function statusFor (stage: Stage, from: string): Promise<number> {
  return (await ask(stage.proxy, from, { name: HOST, headers: { host: stage.host(HOST) } })).status
}

/** Whether nobody with this address gets in. */
async function isShutOut (stage: Stage, from: string): Promise<boolean> {
  return await closesWithin(await openPlain(stage.proxy, from, stage.proxy.ports.https), 10_000)
}

async function patch (proxy: TestProxy, change: Record<string, unknown>): Promise<{ status: number, code?: string, message?: string, at?: unknown, revision?: number }> {
  const { status, body } = await proxy.call('PATCH', '/policy', { vms: [], gone: [], ...change })
  return { status, ...JSON.parse(body) }
}

t.test('a difference changes the VMs that it names, and keeps the policies and connections of all others', async (t) => {
  const { stage, heard } = await stageWith(t)
  const line = `GET / HTTP/1.1\r\nHost: ${stage.host(HOST)}\r\n\r\n`
  const [gone, kept] = [await openTls(stage.proxy, ONE, HOST), await openTls(stage.proxy, THIRD, HOST)]
  for (const socket of [gone, kept]) t.match(await exchangeBytes(socket, line, text => text.includes('origin')), /^HTTP\/1.1 200 /)

  t.match(await patch(stage.proxy, { base: 10, revision: 16, vms: [vmPolicy(OTHER, [{ value: 'another-value' }]), vmPolicy(FOURTH, [{}])], gone: [`vm-${ONE}`] }), { status: 200, revision: 16 })
  t.same(JSON.parse((await stage.proxy.call('GET', '/policy')).body), { revision: 16, vms: 3 })
  t.ok(await closesWithin(gone, 10_000), 'what goes has no connection any more')
  t.ok(await isShutOut(stage, ONE))
  t.equal(await statusFor(stage, OTHER), 200)
  t.equal(heard(), 'Bearer another-value')
  t.equal(await statusFor(stage, FOURTH), 200)
  t.equal(heard(), `Bearer ${SECRET}`)
  t.match(await exchangeBytes(kept, line, text => text.includes('origin')), /^HTTP\/1.1 200 /, 'who is not named keeps his connection')
  t.same((await stage.proxy.audited(`vm-${THIRD}`, entries => entries.length >= 2)).map(({ revision }) => revision), [FIRST, FIRST])
  t.same((await stage.proxy.audited(`vm-${OTHER}`, entries => entries.length >= 1)).map(({ revision }) => revision), [16])

  // The next whole one knows of all of that.
  const whole = await stage.proxy.call('PUT', '/policy', { revision: 17, vms: [vmPolicy(THIRD, [{}])] })
  t.equal(whole.status, 200)
  t.ok(await isShutOut(stage, FOURTH))
  t.match(await exchangeBytes(kept, line, text => text.includes('origin')), /^HTTP\/1.1 200 /)
})

t.test('an address goes from one VM to another within a difference, and the connections of the first end', async (t) => {
  const { stage } = await stageWith(t)
  const before = await openTls(stage.proxy, ONE, HOST)
  t.match(await patch(stage.proxy, { base: 10, revision: 11, vms: [vmPolicy(ONE, [{}], { id: `vm-${OTHER}` }), vmPolicy(OTHER, [{}], { id: 'new' })], gone: [`vm-${ONE}`] }), { status: 200 })
  t.ok(await closesWithin(before, 10_000))
  t.same([await statusFor(stage, ONE), await statusFor(stage, OTHER), await statusFor(stage, THIRD)], [200, 200, 200])
  t.equal((await stage.proxy.audited(`vm-${OTHER}`, entries => entries.length >= 1)).length, 1)
  t.equal((await stage.proxy.audited('new', entries => entries.length >= 1)).length, 1)
})

t.test('a worker that has ended comes back with all differences, and a VM that has begun a new epoch loses its connections', async (t) => {
  const { stage } = await stageWith(t)
  await patch(stage.proxy, { base: 10, revision: 11, vms: [vmPolicy(FOURTH, [{}])], gone: [`vm-${OTHER}`] })
  for (const address of [ONE, OTHER]) await endWorkerOf(stage.proxy, address, 'SIGKILL')
  t.same([await statusFor(stage, ONE), await statusFor(stage, THIRD), await statusFor(stage, FOURTH)], [200, 200, 200])
  t.ok(await isShutOut(stage, OTHER))
  const old = await openTls(stage.proxy, FOURTH, HOST)
  t.match(await patch(stage.proxy, { base: 11, revision: 12, vms: [vmPolicy(FOURTH, [{}], { epoch: '2' })] }), { status: 200 })
  t.ok(await closesWithin(old, 10_000))
  t.equal(await statusFor(stage, FOURTH), 200)
})

t.test('addresses that are denied by a difference are denied to all, and stay so until another one says otherwise', async (t) => {
  const { stage } = await stageWith(t)
  t.equal(await statusFor(stage, ONE), 200)
  await patch(stage.proxy, { base: 10, revision: 11, denied: [`${loopback(100)}/32`] })
  t.equal(await statusFor(stage, ONE), 403)
  await patch(stage.proxy, { base: 11, revision: 12, vms: [vmPolicy(FOURTH, [{}])] })
  t.equal(await statusFor(stage, FOURTH), 403)
  await patch(stage.proxy, { base: 12, revision: 13, denied: [] })
  t.equal(await statusFor(stage, ONE), 200)
})

t.test('a difference to something else than what is enforced, or with a fault, is refused, and nothing has changed', async (t) => {
  t.throws(() => new PolicyBook().change({ base: 0, revision: 1, vms: [], gone: [] }), { name: 'OtherBase' }, 'before the first revision')
  const { stage } = await stageWith(t)
  const before = (await stage.proxy.call('GET', '/policy')).body
  const more = vmPolicy(FOURTH, [{}])
  const refused: Record<string, [change: Record<string, unknown>, status: number, code: string, message: RegExp]> = {
    'to an older revision': [{ base: 9, revision: 11, vms: [more] }, 409, 'other_base', /revision 10 is enforced, and not 9/],
    'to a newer one': [{ base: 11, revision: 12, vms: [more] }, 409, 'other_base', /and not 11/],
    'that is old itself': [{ base: -1, revision: 0 }, 400, 'invalid_policy', /^base: /],
    'whose number does not grow': [{ base: 10, revision: 10 }, 400, 'invalid_policy', /^revision: must be above base$/],
    'that takes away who is not there': [{ base: 10, revision: 11, vms: [more], gone: ['nobody'] }, 409, 'other_base', /a VM is to go/],
    'that gives away an address of somebody': [{ base: 10, revision: 11, vms: [more, vmPolicy(ONE, [{}], { id: 'another' })] }, 409, 'other_base', /an address that another one has/],
    'that names a VM twice': [{ base: 10, revision: 11, vms: [more, { ...more, address: loopback(99) }] }, 400, 'invalid_policy', /^vms\[1\]\.id: /],
    'that sets and takes away': [{ base: 10, revision: 11, vms: [vmPolicy(ONE)], gone: [`vm-${ONE}`] }, 400, 'invalid_policy', /^gone\[0\]: /],
    'that takes away twice': [{ base: 10, revision: 11, gone: [`vm-${ONE}`, `vm-${ONE}`] }, 400, 'invalid_policy', /^gone\[1\]: /],
    'with a rule that is none': [{ base: 10, revision: 11, vms: [more, vmPolicy(loopback(14), [{ header: 'Host' }])] }, 400, 'invalid_policy', /^vms\[1\]\.rules\[0\]\.header: /],
    'with a range that is none': [{ base: 10, revision: 11, denied: ['1.2.3'] }, 400, 'invalid_policy', /^denied\[0\]: /],
    'with a field that is none': [{ base: 10, revision: 11, all: true }, 400, 'invalid_policy', /^all: is no field of it$/]
  }
  for (const [name, [change, status, code, message]] of Object.entries(refused)) {
    t.match(await patch(stage.proxy, change), { status, code, message }, name)
  }
  t.match(await patch(stage.proxy, { base: 10, revision: 11, vms: [more, { ...more, address: loopback(99) }] }), { at: { field: 'vms', index: 1 } }, 'the place of a fault stands by itself')
  t.match(await patch(stage.proxy, { base: 9, revision: 11 }), { revision: 10 }, 'and so does what is enforced')
  t.equal((await stage.proxy.call('GET', '/policy')).body, before)
  t.same([await statusFor(stage, ONE), await statusFor(stage, OTHER)], [200, 200])
  t.ok(await isShutOut(stage, FOURTH))
  t.notMatch(stage.proxy.output(), /"level":"error"/)
})
