// What `npm run fuzz -- policies` found on the control socket: each is refused with its place, and the policy in force stays.
import t from 'tap'
import { vmPolicy } from './helpers/proxy.ts'
import { setStage } from './helpers/setup.ts'
import { holdsNobodyUp } from './helpers/stall.ts'

t.test('what is no policy is refused with its place, and the one in force stays', async (t) => {
  const { proxy, guest } = await setStage(t)
  const before = (await proxy.call('GET', '/policy')).body
  const vms = [vmPolicy(guest, [{}])]
  const refused: Record<string, [body: unknown, message: RegExp]> = {
    'a number behind which none grows': [{ revision: 2 ** 53, vms }, /^revision: must be <= 9007199254740991$/],
    'a key without a name': [{ revision: 2, vms, '': 1 }, /^"": ./],
    'a key that moves a terminal': [{ revision: 2, vms, '\u007f\u001b[2J': 1 }, /^"\\u007f\\u001b\[2J": is no field of it$/],
    'a key of 100 KB': [{ revision: 2, vms: [{ ...vms[0], ['x'.repeat(100_000)]: 1 }] }, /^vms\[0\]\."x{64}": is no field of it$/],
    'lists in lists without end': ['['.repeat(100_000), /^the revision: is not JSON$/],
    'a mark of the byte order': [`\ufeff${JSON.stringify({ revision: 2, vms })}`, /^the revision: is not JSON$/]
  }
  for (const [name, [body, message]] of Object.entries(refused)) {
    await holdsNobodyUp(t, proxy, name, async () => {
      const answer = await proxy.call('PUT', '/policy', body)
      t.equal(answer.status, 400, name)
      t.match(JSON.parse(answer.body).message, message, name)
    })
  }
  t.equal((await proxy.call('GET', '/policy')).body, before)
})

t.test('a request target that is no URL is the fault of who sent it', async (t) => {
  const { proxy } = await setStage(t)
  for (const target of ['//', 'http://[', '///policy']) {
    const { status } = await proxy.call('GET', target)
    t.ok(status === 400 || status === 404, `${target}: ${status}`)
  }
  t.notMatch(proxy.output(), /"level":"error"/)
})
