import t from 'tap'
import { ask, exchangeBytes, openTls } from './helpers/guest.ts'
import { vmPolicy } from './helpers/proxy.ts'
import { setStage } from './helpers/setup.ts'
import { CompiledPolicy } from '../../proxy/gate/host-rules.ts'

t.test('A45: of two credentials of which one begins with the other, neither comes back, not in part, whatever their order', async (t) => {
  const stage = await setStage(t)
  const key = 'acme-9f8e7d6c/5b4a'
  await stage.origin(100, {
    answer (request, response) {
      response.writeHead(200, { 'X-Echo': String(request.headers['x-key']), 'X-Url': encodeURIComponent(key), 'X-Basic': Buffer.from(`u:${key}`).toString('base64'), 'X-Account': String(request.headers['x-acme-account']) }).end()
    }
  })
  const rules = [
    { credential: 'ACCOUNT', mock: 'mock-ACCOUNT', header: 'X-Acme-Account', format: '${value}', value: 'acme' },
    { credential: 'KEY', mock: 'mock-KEY', header: 'X-Key', format: '${value}', value: key }
  ]
  for (const order of [rules, [...rules].reverse()]) {
    await stage.proxy.policy(vmPolicy(stage.guest, order))
    const { headers } = await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { Host: stage.host('api.good.test') } })
    t.match(headers, { 'x-echo': 'mock-KEY', 'x-url': 'mock-KEY', 'x-account': 'mock-ACCOUNT', 'x-basic': /mock-KEY/ })
    t.notMatch(JSON.stringify(headers), /9f8e|5b4a/)
  }
})

t.test('A45: a secret is found however an origin percent-encodes it, and the rest of the text stays as it was', async (t) => {
  const stage = await setStage(t)
  const value = 'aB3/x+Yz9Q=='
  const odd = 'caf\u00E9 100%25 s\u00FCre'
  const base64 = Buffer.from(`id:${value}`).toString('base64')
  const forms = [
    ['as .NET does', value, 'aB3%2fx%2bYz9Q%3d%3d'],
    ['as quote() of Python does', value, 'aB3/x%2BYz9Q%3D%3D'],
    ['as PathEscape of Go does', value, 'aB3%2Fx+Yz9Q=='],
    ['each byte of it', value, [...Buffer.from(value)].map(byte => `%${byte.toString(16)}`).join('')],
    ['with its characters as UTF-8', odd, encodeURIComponent(odd)],
    ['with its characters as bytes', odd, 'caf%E9%20100%2525%20s%FCre'],
    ['as a form does', odd, 'caf%C3%A9+100%2525+s%C3%BCre'],
    ['not at all', odd, odd]
  ] as const
  let location = ''
  await stage.origin(100, { answer: (_request, response) => { response.writeHead(302, { location }).end() } })
  const get = async (text: string) => {
    location = text
    return (await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { Host: stage.host('api.good.test') } })).headers.location
  }
  for (const [how, secret, form] of forms) {
    await stage.proxy.policy(vmPolicy(stage.guest, [{ value: secret }]))
    t.equal(await get(`/?a=%2f%2F&k=${form}&b=%zz%3D&l=${form}%`), '/?a=%2f%2F&k=mock-API_KEY&b=%zz%3D&l=mock-API_KEY%', how)
  }
  await stage.proxy.policy(vmPolicy(stage.guest, [{ value }]))
  t.equal(await get(`/?k=%${value}&l=%25${encodeURIComponent(value)}`), '/?k=%mock-API_KEY&l=%25mock-API_KEY', 'behind a sign that encodes nothing')
  const found = await get(`/?b=${encodeURIComponent(base64)}`)
  t.match(found, /mock-API_KEY/, 'in base64')
  t.notMatch(found, base64.slice(5, 15))
  const longest = value.repeat(1000)
  await stage.proxy.policy(vmPolicy(stage.guest, [{ value: longest }]))
  t.equal(await get('/?a=%2f%2F'), '/?a=%2f%2F', 'a long secret is looked for, too')
})

t.test('A45: a header whose name holds a secret does not reach the guest, in whatever case', async (t) => {
  const stage = await setStage(t)
  await stage.proxy.policy(vmPolicy(stage.guest, [{ value: 'Key-9F8e7D6c' }]))
  await stage.origin(100, {
    answer (_request, response) {
      response.writeHead(200, { 'X-Key-9F8e7D6c': '1', 'x-key-9f8e7d6c-left': '2', 'x-%4bey%2d9f8e7d6c': '3', 'X-Key': '4', 'Transfer-Encoding': 'chunked', Trailer: 'X-Last' })
      response.addTrailers({ 'X-Last': '5', 'X-Key-9f8e7d6c-Trails': '6' })
      response.end('body')
    }
  })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  const bytes = await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n\r\n`, text => text.includes('\r\n0\r\n') && text.endsWith('\r\n\r\n'))
  socket.destroy()
  t.notMatch(bytes, /9f8e7d6c/i)
  t.match(bytes, /\r\nX-Key: 4\r\n/)
  t.match(bytes, /X-Last: 5\r\n/)
})

t.test('what is searched for is kept once for each secret, however many hosts a guest asks for', (t) => {
  const policy = new CompiledPolicy(vmPolicy('192.0.2.1', [{ hosts: ['*.good.test'] }]), 1)
  const [first, second] = ['a.good.test', 'b.good.test'].map(host => policy.rulesFor(host).echoes)
  t.ok(first?.length)
  for (const [index, echo] of (first ?? []).entries()) t.equal(second?.[index], echo)
  t.end()
})
