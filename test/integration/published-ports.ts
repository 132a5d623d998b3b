// A program in a real machine that is reached through published ports, awake and asleep. Run by published-ports.long.test.ts in a network namespace of its own.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../core/process/run.ts'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'
import { berth } from '../cli/berth.ts'
import { eventually } from '../helpers/eventually.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createMachine, follow } from '../helpers/machine.ts'
import { ownNetwork } from '../helpers/own-network.ts'
import { compileProgram } from '../helpers/program.ts'
import { startTestServer, type TestServer } from '../helpers/server.ts'

const OUTSIDE = '198.51.100.2'
const HOST = '198.51.100.1'
const commands = createHostCommands()

// One connection after the other: what is asked is answered in one write. A datagram comes back as it is.
const ECHO = `
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
int main (void) {
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(7) };
  int tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
  if (bind(tcp, (void *) &at, sizeof at) || listen(tcp, 1024) || bind(udp, (void *) &at, sizeof at)) return 1;
  puts("listening");
  fflush(stdout);
  struct pollfd both[2] = { { tcp, POLLIN, 0 }, { udp, POLLIN, 0 } };
  char data[2048];
  for (;;) {
    poll(both, 2, -1);
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    if (both[0].revents) {
      int client = accept(tcp, (void *) &from, &length);
      char peer[64];
      ssize_t count = read(client, data, sizeof data - 64);
      if (count > 0) {
        int n = snprintf(peer, sizeof peer, " %s", inet_ntoa(from.sin_addr));
        if (write(client, data, count) < 0 || write(client, peer, n) < 0) puts("a client was gone");
      }
      close(client);
    }
    if (both[1].revents) {
      ssize_t count = recvfrom(udp, data, sizeof data, 0, (void *) &from, &length);
      if (count > 0) sendto(udp, data, count, 0, (void *) &from, length);
    }
  }
}
`

const reason = missingPrivileges()
if (reason === undefined) await t.test('a program in a machine is reached through published ports, awake and asleep', { timeout: 900_000 }, published)
else t.plan(0, reason)

async function published (t: Test): Promise<void> {
  const { namespace, cidr } = ownNetwork()
  const outside = `${namespace}-out`
  t.teardown(async () => { for (const name of [namespace, outside]) if (existsSync(`/run/netns/${name}`)) await commands.run('ip', ['netns', 'delete', name]) })
  await connectOutside(outside)
  const server = await startTestServer(t, { plugins: { networking: { config: { uplink: 'wan', namespace, cidr } } } })
  const image = await push(server, await busyboxImage({}, [{ path: 'echo', mode: 0o755, content: await compileProgram(ECHO) }]), 'ports/echo:latest')
  const { id } = await createMachine(server, image, { name: 'echo', entrypoint: [], cmd: ['/echo'] })
  await follow(server, id, (line) => line.includes('listening'))
  const tcp = await publish(server, { instance_port: 7, address: '0.0.0.0' })
  const udp = await publish(server, { instance_port: 7, protocol: 'udp' })

  t.match((await berth(['ps'], { env: { BERTH_URL: server.url, BERTH_TOKEN: server.key } })).out, `0.0.0.0:${tcp.host_port}->7/tcp, 127.0.0.1:${udp.host_port}->7/udp`)

  t.equal(tcp.way, 'direct')
  t.equal(await ask('127.0.0.1', tcp.host_port, 'loopback'), 'loopback 169.254.0.1')
  t.equal(await ask(HOST, tcp.host_port, 'own'), `own ${HOST}`)
  t.equal(await askFrom(outside, HOST, tcp.host_port, 'outside'), `outside ${OUTSIDE}`, 'the guest sees who calls')
  t.equal(await datagram(udp.host_port, 'awake'), 'awake')

  t.comment('asleep: the first connection, beside a restore by hand')
  const alone: number[] = []
  const woken: number[] = []
  for (let round = 0; round < 3; round++) {
    await asleep(t, server)
    alone.push(await timed(async () => { await server.sdk.instances.restore('echo') }))
    await asleep(t, server)
    woken.push(await timed(async () => { t.match(await ask('127.0.0.1', tcp.host_port, 'first'), /^first /) }))
  }
  const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[1] ?? NaN
  t.comment(`restore alone ${median(alone).toFixed(0)} ms, first byte of a sleeper ${median(woken).toFixed(0)} ms: ratio ${(median(woken) / median(alone)).toFixed(2)}`)

  await asleep(t, server)
  t.equal(await datagram(udp.host_port, 'asleep'), 'asleep', 'the first datagram is kept')

  await asleep(t, server)
  const before = await restores(server, id)
  const answers = await Promise.all(Array.from({ length: 200 }, async (_, n) => await ask('127.0.0.1', tcp.host_port, `caller ${n}`)))
  t.equal(answers.filter((answer, n) => answer.startsWith(`caller ${n} `)).length, 200)
  t.equal(await restores(server, id) - before, 1)

  await server.sdk.instances.delete(id)
  await t.rejects(ask('127.0.0.1', tcp.host_port, 'gone'), { code: 'ECONNREFUSED' })
  t.notMatch((await commands.run('nft', ['list', 'tables'])).stdout, /-ports/, 'no rule is left')
}

/** What comes from then on must find no rule that leads it to a guest that is gone. */
async function asleep (t: Test, server: TestServer): Promise<void> {
  await server.sdk.instances.standby('echo')
  t.notMatch((await commands.run('nft', ['list', 'tables'])).stdout, /-ports/, 'no rule leads to a guest that sleeps')
}

async function publish (server: TestServer, body: object): Promise<{ readonly host_port: number, readonly way: string }> {
  const answer = await fetch(`${server.url}/instances/echo/ports`, { method: 'POST', headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' }, body: JSON.stringify(body) })
  if (answer.status !== 201) throw new Error(await answer.text())
  return await answer.json() as { host_port: number, way: string }
}

async function ask (host: string, port: number, question: string): Promise<string> {
  const socket = connect({ host, port })
  await once(socket, 'connect')
  socket.write(question)
  return await text(socket)
}

async function askFrom (namespace: string, host: string, port: number, question: string): Promise<string> {
  const program = `const s = require('net').connect(${port}, '${host}'); s.on('connect', () => s.write('${question}')); s.pipe(process.stdout)`
  return (await commands.run('nsenter', [`--net=/run/netns/${namespace}`, process.execPath, '-e', program], { timeoutMs: 60_000 })).stdout
}

async function datagram (port: number, question: string): Promise<string> {
  const socket = createSocket('udp4')
  const answers: string[] = []
  socket.on('message', (data) => { answers.push(data.toString()) })
  socket.send(question, port, '127.0.0.1')
  try {
    return await eventually('the answer to a datagram', () => answers[0])
  } finally {
    socket.close()
  }
}

async function restores (server: TestServer, id: string): Promise<number> {
  return (await readFile(join(server.dataDir, 'instances', id, 'operations.log'), 'utf8')).split('\n').filter((line) => line.includes('restore: VM runs')).length
}

async function timed (work: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

/** An outside that this namespace, the "host", reaches through `wan`. */
async function connectOutside (outside: string): Promise<void> {
  await commands.run('ip', ['netns', 'add', outside])
  await commands.run('ip', ['-batch', '-'], { input: `link set lo up\nlink add wan type veth peer name wan netns ${outside}\naddress add ${HOST}/24 dev wan\nlink set wan up\n` })
  await commands.run('ip', ['-n', outside, '-batch', '-'], { input: `link set lo up\naddress add ${OUTSIDE}/24 dev wan\nlink set wan up\n` })
}
