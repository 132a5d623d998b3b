// The clients that everybody uses, each with the trust that it finds by itself, and bytes that arrive as they were sent.
import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import type { Echo } from '../origins/echo.ts'
import { COMPRESSED, hashOfBytes } from '../origins/echo.ts'
import { FURTHER_PORT, ORIGINS, type Seen } from '../origins/contract.ts'
import { valuesOf } from '../origins/host.ts'
import { checkPlacement, succeed, watched, type Stage } from '../stage.ts'

const API = `https://${ORIGINS.api}`
const MOCK = '-H "Authorization: Bearer $API_KEY"'
/** Enough for many windows of every hop. test/proxy/ten-gigabytes has the length; each megabyte is dear in an emulated guest. */
const LARGE = 2 ** 25

const PYTHON = `import json, os, urllib.request
request = urllib.request.Request("${API}/echo/python", data=b"of python", method="POST", headers={"Authorization": "Bearer " + os.environ["API_KEY"]})
with urllib.request.urlopen(request) as answer: print(json.dumps([answer.status, json.load(answer)]))`

/** One request each to `/echo/<name>`. */
const CLIENTS: Readonly<Record<string, { readonly script: string, readonly method?: string, readonly body?: string }>> = {
  curl: { script: `curl -sS --fail --http2 ${MOCK} -d "of curl" ${API}/echo/curl`, method: 'POST', body: 'of curl' },
  'curl over HTTP/1.1': { script: `curl -sS --fail --http1.1 ${MOCK} "${API}/echo/curl%20over%20HTTP/1.1"` },
  wget: { script: `wget -q -O - --header="Authorization: Bearer $API_KEY" --post-data="of wget" ${API}/echo/wget`, method: 'POST', body: 'of wget' },
  python: { script: `python3 -c '${PYTHON}'`, method: 'POST', body: 'of python' },
  'openssl s_client': {
    script: `printf 'GET /echo/openssl%%20s_client HTTP/1.1\\r\\nHost: ${ORIGINS.api}\\r\\nAuthorization: Bearer %s\\r\\nConnection: close\\r\\n\\r\\n' "$API_KEY" | openssl s_client -quiet -verify_return_error -connect ${ORIGINS.api}:443 -servername ${ORIGINS.api}`
  }
}

export async function usualClients (t: Test, stage: Stage): Promise<void> {
  for (const [name, { script, method = 'GET', body = '' }] of Object.entries(CLIENTS)) {
    const { result, seen } = await watched(stage, async () => await succeed(t, stage.guest, script))
    t.match(seen, [{ origin: 'api', secure: true, method, url: `/echo/${name.replaceAll(' ', '%20')}`, bodyBytes: body.length, bodyHash: hashOf(body) }], `${name}: the origin got the request as it was`)
    t.equal(seen.length, 1, `${name}: and just once`)
    t.match(result, `"bodyHash":${name === 'python' ? ' ' : ''}"${hashOf(body)}"`, `${name}: and the client got the answer`)
    checkPlacement(t, seen, stage.secrets)
  }
}

/** Another port that the operator has named is mediated as 443 is, and the origin is called at that port. */
export async function furtherPort (t: Test, stage: Stage): Promise<void> {
  for (const version of ['--http1.1', '--http2']) {
    const { seen } = await watched(stage, async () => await succeed(t, stage.guest, `curl -sS --fail ${version} ${MOCK} -d "of curl" ${API}:${FURTHER_PORT}/echo/further`))
    t.match(seen, [{ origin: 'api', secure: true, method: 'POST', url: '/echo/further', bodyHash: hashOf('of curl') }], version)
    t.same(seen.map(({ headers }) => [valuesOf(headers, 'authorization'), [...valuesOf(headers, 'host'), ...valuesOf(headers, ':authority')]]), [[[`Bearer ${stage.secrets.REAL_KEY}`], [`${ORIGINS.api}:${FURTHER_PORT}`]]])
    checkPlacement(t, seen, stage.secrets)
  }
  const { exitCode } = await stage.guest.run(`curl -sS -m 10 ${API}:${FURTHER_PORT + 1}/echo/none`)
  t.equal(exitCode, 7, 'a port that nobody has named is refused')
}

interface NodeFound {
  readonly fetch: { readonly status: number, readonly cookies: readonly string[], readonly echo: Echo, readonly expanded: number }
  readonly keepAlive: { readonly connections: number, readonly answers: readonly Echo[] }
  readonly http2: readonly { readonly status: number, readonly echo: Echo }[]
}

export async function nodeClients (t: Test, stage: Stage): Promise<void> {
  const { result, seen } = await watched(stage, async () => await succeed(t, stage.guest, `node /clients/web.js ${API} "$API_KEY"`))
  const found = JSON.parse(result) as NodeFound
  const body = Buffer.alloc(300_000, 'words ')
  t.match(found.fetch, { status: 200, cookies: ['a=1; Path=/', 'b=2; Path=/'], expanded: 32_000, echo: { method: 'PUT', url: '/echo/fetch?a=1&a=2', bodyHash: hashOf(body) } }, 'P5, P6: fetch')
  t.equal(found.keepAlive.connections, 1, 'P1: one connection for all')
  t.same(found.keepAlive.answers.map(({ url }) => url), [0, 1, 2].map((round) => `/echo/keep//alive/../${round}`), 'A53: paths as they were written')
  for (const { bodyHash, names } of found.keepAlive.answers) {
    t.equal(bodyHash, hashOf('one two'), 'P2: a body in chunks')
    t.ok(names.some((name) => name.toLowerCase() === 'x-mixed-case'))
  }
  t.same(found.http2.map(({ status, echo }) => [status, echo.bodyHash]), [1, 2, 3, 4, 5].map((round) => [200, hashOf(body.subarray(0, round * 50_000))]), 'P11: five streams of one session')
  t.equal(seen.length, 10)
  checkPlacement(t, seen, stage.secrets)
}

export async function statusesAndHeaders (t: Test, stage: Stage): Promise<void> {
  const statuses = [204, 304, 401, 404, 407, 500]
  const printed = await succeed(t, stage.guest, statuses.map((status) => `curl -sS -o /dev/null -w '%{http_code} %header{x-status}\\n' ${API}/status/${status}`).join(' && '))
  t.equal(printed, statuses.map((status) => `${status} ${status}\n`).join(''), 'P3, P25: they pass as they are')
  const headers = await succeed(t, stage.guest, `curl -sS -D - -o /dev/null ${API}/echo/x | tr -d '\\r'`)
  t.match(headers, /^set-cookie: a=1; Path=\/\nset-cookie: b=2; Path=\/$/m, 'P5: two cookies are two headers')
  t.match(headers, /^x-origin: echo$/m)
  const compressed = await succeed(t, stage.guest, `curl -sS -H 'Accept-Encoding: gzip' ${API}/compressed | sha256sum`)
  t.match(compressed, hashOf(COMPRESSED), 'P6: compressed bytes as they were')
  const reflected = await succeed(t, stage.guest, `curl -sS -D - -o /dev/null ${MOCK} ${API}/reflect`)
  t.match(reflected, /x-reflected: Bearer mock-API_KEY\r/i, 'A45: what an origin sends back of it is the mock')
}

/** A body of more than a megabyte is announced by curl with `Expect: 100-continue`. */
export async function expectContinue (t: Test, stage: Stage): Promise<void> {
  const size = 3_000_000
  const { seen } = await watched(stage, async () => await succeed(t, stage.guest,
    `curl -sS ${API}/bytes/${size} -o /tmp/big && curl -sS --fail --http1.1 ${MOCK} -H 'Expect: 100-continue' --data-binary @/tmp/big ${API}/echo/expect; rm /tmp/big`))
  t.match(seen.at(-1), { url: '/echo/expect', bodyBytes: size, bodyHash: hashOfBytes(size) })
  checkPlacement(t, seen, stage.secrets)
}

/** The guest's hash is one that is quick under emulation. What goes up is an eighth of what came, eight times, which is the whole again. */
export async function largeBodies (t: Test, stage: Stage): Promise<void> {
  const began = Date.now()
  const printed = await succeed(t, stage.guest, `curl -sS --fail ${API}/bytes/${LARGE} | md5sum`)
  t.match(printed, hashOfBytes(LARGE, 'md5'), 'P8: down')
  const down = Date.now()
  const { seen } = await watched(stage, async () => await succeed(t, stage.guest,
    `curl -sS --fail ${API}/bytes/${LARGE / 8} -o /dev/shm/part; for i in 1 2 3 4 5 6 7 8; do cat /dev/shm/part; done | curl -sS --fail ${MOCK} -T - ${API}/echo/large; rm /dev/shm/part`))
  t.match(seen.find(({ url }) => url === '/echo/large'), { bodyBytes: LARGE, bodyHash: hashOfBytes(LARGE) }, 'P8: up')
  t.comment(`${LARGE / 2 ** 20} MB down in ${((down - began) / 1000).toFixed(1)} s, up in ${((Date.now() - down) / 1000).toFixed(1)} s`)
  checkPlacement(t, seen, stage.secrets)
}

/** The rules hold by host and by TLS, and a mock is just text everywhere else. */
export async function placement (t: Test, stage: Stage): Promise<void> {
  const urls = [`https://${ORIGINS.wild}`, `https://${ORIGINS.deep}`, `https://${ORIGINS.other}`, `http://${ORIGINS.api}`, `http://${ORIGINS.other}`]
  const { seen } = await watched(stage, async () => await succeed(t, stage.guest,
    urls.map((url) => `curl -sS --fail ${MOCK} -H "X-Mock: $API_KEY" -d "$API_KEY" "${url}/echo/$API_KEY?key=$API_KEY" -o /dev/null`).join(' && ')))
  t.same(seen.map(({ origin, secure }) => [origin, secure]), [['wild', true], ['deep', true], ['other', true], ['api', false], ['other', false]])
  const authorizations = seen.map(({ headers }) => valuesOf(headers, 'authorization'))
  const mock = 'Bearer mock-API_KEY'
  t.same(authorizations, [[`Bearer ${stage.secrets.REAL_KEY}`], [mock], [mock], [mock], [mock]], 'A11, A34, A42: only under the wildcard by one label, and only over TLS')
  for (const each of seen) t.match(each, { url: '/echo/mock-API_KEY?key=mock-API_KEY', body: 'mock-API_KEY' }, 'A42: mocks elsewhere in a request are text')
  for (const { headers } of seen) t.same(valuesOf(headers, 'x-mock'), ['mock-API_KEY'])
  checkPlacement(t, seen, stage.secrets)
  const login = await watched(stage, async () => await succeed(t, stage.guest, `curl -sS --fail -u user:$LOGIN https://${ORIGINS.other}/echo/basic -o /dev/null`))
  t.same(login.seen.map(({ headers }: Seen) => valuesOf(headers, 'authorization')), [[`Basic ${Buffer.from('user:mock-LOGIN').toString('base64')}`]], 'A42: in Basic too')
}

function hashOf (content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}
