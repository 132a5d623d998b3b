// The server dies as in a power cut of its process, and the machines do not notice.
import t from 'tap'
import { busyboxImage, push } from '../helpers/images.ts'
import { createShell, follow, lines, waitFor } from '../helpers/machine.ts'
import { startTestServer } from '../helpers/server.ts'

const server = await startTestServer(t)
const image = await push(server, await busyboxImage(), 'crash/busybox:latest')

/** Prints the identity of its boot, then counts for ever, four times a second. */
const counting = 'cat /proc/sys/kernel/random/boot_id; n=0; while true; do n=$((n+1)); echo "$n $(cut -d" " -f1 /proc/uptime)"; sleep 0.25; done'

t.test('three machines outlive kill -9 of the server, and one that ended meanwhile tells how', { timeout: 900_000 }, async (t) => {
  const running = []
  for (const name of ['crash-a', 'crash-b', 'crash-c']) running.push(await createShell(server, image, counting, { name }))
  const ending = await createShell(server, image, 'echo up; while [ ! -e /go ]; do sleep 0.2; done; sleep 3; echo last words; exit 42', { name: 'crash-ending' })
  for (const { id } of [...running, ending]) await waitFor(server, id, 'Running')
  const before = new Map<string, string[]>()
  for (const { id } of running) before.set(id, await follow(server, id, line => line.startsWith('3 ')))
  await follow(server, ending.id, line => line === 'up')

  await touch(ending.id, '/go')
  await server.kill9()
  // The program ends three seconds after it was told to, while no server is there to see it.
  await new Promise(resolve => setTimeout(resolve, 20_000))
  await server.restart()

  const list = await server.sdk.instances.list()
  t.strictSame(list.map(({ name, state }) => [name, state]).sort(), [
    ['crash-a', 'Running'], ['crash-b', 'Running'], ['crash-c', 'Running'], ['crash-ending', 'Stopped']
  ], 'right after the restart every state is known')
  t.match(await server.sdk.instances.get(ending.id), { exit_code: 42 })
  t.ok((await lines(server, ending.id)).includes('last words'))

  for (const { id, name } of running) {
    const seen = before.get(id) ?? []
    const reached = Number(seen.at(-1)?.split(' ')[0])
    const after = await follow(server, id, line => Number(line.split(' ')[0]) > reached + 45)
    t.equal(after[0], seen[0], `${name} is the same boot`)
    const counts = after.slice(1).map(line => Number(line.split(' ')[0]))
    t.strictSame(counts, counts.map((_count, index) => index + 1), `the log of ${name} has no gap`)
    const uptimes = after.slice(1).map(line => Number(line.split(' ')[1]))
    t.strictSame(uptimes, [...uptimes].sort((a, b) => a - b), `the uptime of ${name} only grows`)
  }
  t.match(await server.sdk.instances.stat(running[0]?.id ?? '', { path: '/bin/busybox' }), { exists: true }, 'the guest is spoken to again')
  for (const { id } of [...running, ending]) await server.sdk.instances.delete(id)
})

/** Makes an empty file in a machine, through cp. */
async function touch (id: string, path: string): Promise<void> {
  const { cpToInstance } = await import('@onkernel/hypeman/lib/cp')
  await cpToInstance({ baseURL: server.url, apiKey: server.key }, { instanceId: id, srcPath: '/dev/null', dstPath: path })
}
