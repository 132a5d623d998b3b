import t from 'tap'
import { Refusal } from '../../proxy/gate/reasons.ts'
import { OriginAgent } from '../../proxy/upstream/origin-agent.ts'
import { sendRequest } from '../../proxy/upstream/request.ts'

t.test('a path that would end the request line is refused before an origin is asked', async t => {
  let connections = 0
  const agent = new OriginAgent({ secure: true, maxSockets: 1, connect: async () => { connections++; throw new Error('nobody is there') } })
  const origin = { agent, target: { host: { name: 'api.good.test', family: 0 as const }, port: 443, secure: true } }
  const ask = async (path: string) => await new Promise<unknown>(resolve => sendRequest({ origin, method: 'GET', path, ready: resolve, answered: resolve, failed: resolve }))
  for (const path of ['/a b', '/\r\nX: y', '/\u010a', '/\t']) {
    const outcome = await ask(path)
    t.ok(outcome instanceof Refusal && outcome.code === 'bad_request', JSON.stringify(path))
  }
  t.equal(connections, 0)
  t.notOk(await ask('//a%20b?c=\u00e9') instanceof Refusal, 'others go on')
  t.equal(connections, 1)
})
