// The relay that adds a bearer token, asked by somebody who is not skopeo.
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, request as requestOf } from 'node:http'
import { createServer as createTlsServer } from 'node:tls'
import t from 'tap'
import { openTokenRelay } from '../../../plugins/images/token-relay.ts'
import { makeAuthority } from '../../core/tls/certificates.ts'
import { testFolder } from '../../helpers/folder.ts'
import { insider, listen } from '../../helpers/hostile-registry.ts'

t.test('a relay lets nobody in without its password, and writes only when it is for a push', async (t) => {
  const seen: string[] = []
  const registry = createServer((request, response) => {
    seen.push(`${request.method ?? ''} ${request.headers.authorization ?? ''}`)
    request.resume()
    response.writeHead(202, { location: `http://${request.headers.host ?? ''}/v2/a/blobs/uploads/1?x=y` }).end()
  })
  await once(registry.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => { registry.close(); registry.closeAllConnections() })
  const address = registry.address()
  const host = `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  for (const writes of [false, true]) {
    const relay = await openTokenRelay({ host, token: 'the-token', insecure: true, writes })
    const send = async (method: string, password = relay.password): Promise<Response> => await fetch(`http://${relay.endpoint}/v2/a/blobs/uploads/`, {
      method, headers: { authorization: `Basic ${Buffer.from(`${relay.username}:${password}`).toString('base64')}` }, ...method === 'POST' ? { body: 'x' } : {}
    })
    t.equal((await send('GET', 'wrong')).status, 401)
    t.equal((await send('GET')).status, 202)
    const post = await send('POST')
    t.equal(post.status, writes ? 202 : 405)
    if (writes) t.equal(post.headers.get('location'), '/v2/a/blobs/uploads/1?x=y', 'the upload goes on through the relay')
    t.equal((await send('DELETE')).status, 405, 'nobody deletes')
    await relay.close()
  }
  t.same(seen, ['GET Bearer the-token', 'GET Bearer the-token', 'POST Bearer the-token'])
})

t.test('a registry that answers with another protocol holds no relay up', async (t) => {
  const files = await (await makeAuthority(testFolder(t))).issue('registry')
  const [cert, key] = await Promise.all([files.certificate, files.key].map(async (path) => await readFile(path)))
  const registry = createTlsServer({ cert, key }, (socket) => {
    socket.on('error', () => {}).once('data', () => { socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n') })
  })
  await once(registry.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => { registry.close() })
  const address = registry.address()
  const relay = await openTokenRelay({ host: `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`, token: 'the-token', insecure: true, writes: false })
  const answer = await fetch(`http://${relay.endpoint}/v2/`, { headers: { authorization: `Basic ${Buffer.from(`${relay.username}:${relay.password}`).toString('base64')}` } })
  t.equal(answer.status, 502)
  await relay.close()
})

t.test('a path that names another host leads to the registry or nowhere, and no answer of the registry gives such a one', async (t) => {
  const inner = await insider(t, '127.0.0.2')
  const elsewhere = `${inner.host}:${inner.port}/x`
  const given = [`//${elsewhere}`, `////${elsewhere}`, `http://127.0.0.1////${elsewhere}`, '/v2/a/blobs/uploads/1']
  const registry = await listen(t, '127.0.0.1', (request, response) => {
    const at = Number(new URL(request.url ?? '', 'http://registry').searchParams.get('at') ?? 0)
    response.writeHead(202, { location: given[at]?.replace('127.0.0.1////', `${request.headers.host ?? ''}////`) ?? '/' }).end()
  })
  const relay = await openTokenRelay({ host: `${registry.host}:${registry.port}`, token: 'the-token', insecure: true, writes: true })
  const authorization = `Basic ${Buffer.from(`${relay.username}:${relay.password}`).toString('base64')}`
  // fetch tidies paths; this sends them as they are.
  const send = async (method: string, path: string): Promise<{ readonly status: number | undefined, readonly location: string | undefined }> => {
    const [host, port] = relay.endpoint.split(':')
    const sent = requestOf({ host, port, method, path, headers: { authorization, 'content-length': '1' }, agent: false })
    sent.end('x')
    const [answer] = await once(sent, 'response')
    answer.resume()
    return { status: answer.statusCode, location: answer.headers.location }
  }
  for (const path of [`//${elsewhere}`, `////${elsewhere}`, `/\\${elsewhere}`, `/\\/${elsewhere}`, `http://${elsewhere}`, '//[', '*', 'x']) {
    for (const method of ['POST', 'PATCH', 'PUT']) t.equal((await send(method, path)).status, 400, `${method} ${path}`)
  }
  t.same(inner.requests, [])
  for (const [at, location] of given.entries()) t.equal((await send('POST', `/v2/a/blobs/uploads/?at=${at}`)).location, location.startsWith('/v2/') ? location : undefined, location)
  t.equal((await send('GET', '/v2//a')).status, 202, 'other paths are passed on as they are')
  t.match(registry.requests.at(-1), 'GET /v2//a Bearer the-token')
  await relay.close()
})
