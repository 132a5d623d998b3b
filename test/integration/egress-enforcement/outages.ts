// What guests can do while the server or the proxy is dead, after either has come back, and after the host itself was started anew.
// Run by outages.long.test.ts in a network namespace of its own.
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readIdentity } from '../../../core/process/identity.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { processesIn } from '../../../setup/server/leftovers.ts'
import { follow, lines, waitFor } from '../../helpers/machine.ts'
import { processTree } from '../../helpers/process-tree.ts'
import { API, STRANGER } from './far/contract.ts'
import { addGuest, fetchFrom, guestOf, mediated, mediates, proxiesOf, SECRET, setScene, type Guest, type Scene } from './scene.ts'
import { eventually } from '../../helpers/eventually.ts'

interface Stage { readonly scene: Scene, readonly sealed: Guest, readonly web: Guest }

const WEB = [`${STRANGER}:80`, `${STRANGER}:443`, `${API.address}:80`, `${API.address}:443`] as const
const { run } = createHostCommands()

const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)

async function main (): Promise<void> {
  const scene = await setScene(t)
  const stage = { scene, sealed: await addGuest(scene, 'sealed', mediated('all')), web: await addGuest(scene, 'web', mediated('http_https_only')) }
  const tests: Readonly<Record<string, (t: Test, stage: Stage) => Promise<void>>> = {
    'A28: a proxy that was killed is started again with its policies, and meanwhile 80 and 443 lead nowhere': proxyKilled,
    'A28, A29: the server killed, the policy goes on, with the connections that are open': serverKilled,
    'A28: the server and the proxy killed, 80 and 443 are refused, never direct': bothKilled,
    'A29, A46: after PATCH has answered each request carries the new value': rotated,
    'A33: after a crash of the host the rules stand before a guest has sent a packet': rebooted
  }
  const only = process.argv.slice(2)
  for (const [name, work] of Object.entries(tests)) {
    if (only.length > 0 && !only.some((part) => name.includes(part))) continue
    await t.test(name, { timeout: 900_000 }, async (t) => {
      await scene.far.forget()
      await work(t, stage)
    })
  }
}

/** Nothing that only the proxy may send has come from anybody else, since the stranger's address is none that it dials. */
async function nothingDirect (t: Test, { far }: Scene): Promise<void> {
  t.same((await far.arrived()).filter((line) => /^(tcp|udp) /.test(line) && /:(80|443)$/.test(line) && line.includes(STRANGER)), [], 'nothing has gone directly out')
}

/** Workers end with their proxy, a moment later: until then packets that end their connections go out. */
async function kill (proxies: readonly number[]): Promise<void> {
  const all = proxies.flatMap(processTree)
  for (const pid of proxies) process.kill(pid, 'SIGKILL')
  await eventually('the processes are gone', () => all.every((pid) => readIdentity(pid) === undefined))
}

async function proxyKilled (t: Test, { scene, sealed, web }: Stage): Promise<void> {
  await mediates(t, scene, sealed, 'before')
  const before = await proxiesOf(scene)
  t.equal(before.length, 1)
  // All the while, in the guests: each look either meets a proxy or is refused.
  const looks = [sealed, web].map(async (guest) => await guest.run(`for i in $(seq 30); do probe tcp ${WEB.slice(0, 2).join(' ')}; done`))
  await kill(before)
  for (const printed of await Promise.all(looks)) {
    for (const line of printed.trim().split('\n')) t.match(line, /:(80|443) (open \d+ *$|ECONNREFUSED|ECONNRESET)/)
  }
  await eventually('another proxy runs', async () => (await proxiesOf(scene)).some((pid) => !before.includes(pid)))
  await eventually('it has its policies', async () => await fetchFrom(sealed, `https://${API.host}/again`) === `hello from ${API.host}`)
  await mediates(t, scene, sealed, 'afterwards')
  await mediates(t, scene, web, 'afterwards')
  await nothingDirect(t, scene)
}

async function serverKilled (t: Test, { scene, sealed, web }: Stage): Promise<void> {
  const { server, far } = scene
  // Both without the API, which is about to be gone: a stream that is open, and a program that asks again and again.
  await sealed.run(`curl -sN http://${API.host}/stream-kept > /tmp/stream 2>&1 & echo $! > /tmp/stream.pid; (while [ ! -e /tmp/enough ]; do curl -s -m 15 https://${API.host}/without-server; sleep 0.3; done) > /dev/null 2>&1 &`)
  await eventually('the stream is open', async () => (await far.streams()).includes('/stream-kept'))
  await server.kill9()
  const before = (await far.seen()).length
  await eventually('requests go on', async () => (await far.seen()).slice(before).length > 3)
  const requests = (await far.seen()).slice(before)
  t.same([...new Set(requests.map(({ authorization }) => authorization))], [`Bearer ${SECRET}`], `${requests.length} requests without a server carry the credential`)
  await server.restart()
  t.ok((await far.streams()).includes('/stream-kept'), 'the connection of before goes on under the next server')
  t.equal((await proxiesOf(scene)).length, 1)
  await mediates(t, scene, sealed, 'under the next server')
  await mediates(t, scene, web, 'under the next server')
  await sealed.run('touch /tmp/enough; kill $(cat /tmp/stream.pid)')
  await eventually('the stream has ended', async () => !(await far.streams()).includes('/stream-kept'))
}

async function bothKilled (t: Test, { scene, sealed, web }: Stage): Promise<void> {
  const { server, far } = scene
  // The guests look by themselves: without a server there is nobody to ask them.
  for (const guest of [sealed, web]) await guest.run(`rm -f /tmp/looks /tmp/stop; (while [ ! -e /tmp/stop ]; do echo "$(cat /proc/uptime) $(probe tcp ${WEB.join(' ')} | tr '\\n' ';')"; sleep 0.2; done) > /tmp/looks 2>&1 &`)
  const proxies = await proxiesOf(scene)
  await server.kill9()
  await kill(proxies)
  await far.forget()
  await new Promise((resolve) => setTimeout(resolve, 4000))
  await nothingDirect(t, scene)
  t.same((await far.opened()).filter((origin) => origin.startsWith(API.address)), [], 'no connection to an origin that the policy names was begun')
  await server.restart()
  for (const [name, guest] of Object.entries({ sealed, web })) {
    const looks = await guest.run('touch /tmp/stop; cat /tmp/looks')
    const during = looks.split('\n').filter((line) => line.split('ECONNREFUSED').length - 1 === WEB.length)
    t.ok(during.length > 3, `${name}: ${during.length} looks found all of 80 and 443 refused`)
    for (const found of looks.matchAll(/:(?:80|443) (\S+) (\d+) ([^;]*)/g)) {
      t.ok(['open', 'ECONNREFUSED', 'ECONNRESET'].includes(found[1] ?? '') && Number(found[2]) < 5000 && found[3] === '', `${name}: ${found[0]}`)
    }
    await eventually('the policy is back', async () => await fetchFrom(guest, `https://${API.host}/back`) === `hello from ${API.host}`)
    await mediates(t, scene, guest, `${name}: afterwards`)
  }
  await nothingDirect(t, scene)
}

async function rotated (t: Test, { scene, sealed }: Stage): Promise<void> {
  const { server, far } = scene
  await sealed.run('rm /tmp/enough; (while [ ! -e /tmp/enough ]; do curl -s -m 15 https://api.good.test/rotation; sleep 1; done) > /dev/null 2>&1 &')
  await eventually('requests are under way', async () => (await far.seen()).some(({ url }) => url === '/rotation'))
  const value = `${SECRET}rotated`
  await server.sdk.instances.update(sealed.id, { env: { REAL: value } })
  const answered = (await far.seen()).length
  await eventually('requests go on', async () => (await far.seen()).slice(answered).length > 1)
  await sealed.run('touch /tmp/enough')
  const after = (await far.seen()).slice(answered)
  t.same([...new Set(after.map(({ authorization }) => authorization))], [`Bearer ${value}`], `${after.length} requests after the answer`)
  await mediates(t, scene, sealed, 'afterwards', value)
  await server.sdk.instances.update(sealed.id, { env: { REAL: SECRET } })
}

async function rebooted (t: Test, { scene }: Stage): Promise<void> {
  const { server, far, namespace } = scene
  const early = `while true; do probe tcp ${STRANGER}:22 ${STRANGER}:80 ${STRANGER}:8443 | tr '\\n' ';'; echo; done`
  const { id } = await addGuest(scene, 'early', mediated('all'), early)
  await server.sdk.instances.stop(id)
  await far.forget()
  await server.kill9()
  // All that a crash of the host takes: every process that the server has started, and the kernel's network.
  for (const { pid } of await processesIn(join(server.folder, 'data'))) process.kill(pid, 'SIGKILL')
  await eventually('everything has ended', async () => (await processesIn(join(server.folder, 'data'))).length === 0)
  await run('ip', ['netns', 'delete', namespace])
  await server.restart()
  await server.sdk.instances.start(id, {})
  await waitFor(server, id, 'Running')
  await follow(server, id, (line) => line.includes('8443'))
  await new Promise((resolve) => setTimeout(resolve, 2000))
  for (const line of await lines(server, id)) {
    if (!line.includes('8443')) continue
    t.match(line, /:22 ECONNREFUSED .*:80 (open \d+ *;|ECONNREFUSED).*:8443 ECONNREFUSED/, 'from the first look on')
  }
  t.same((await far.arrived()).filter((line) => line.includes(STRANGER)), [], 'no packet of all that has left')
  await mediates(t, scene, await guestOf(server, id), 'its policy is there')
  await server.sdk.instances.delete(id)
}
