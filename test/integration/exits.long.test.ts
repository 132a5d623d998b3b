// How a program ends and what the API then says about it.
import t from 'tap'
import { busyboxImage, push } from '../helpers/images.ts'
import { createMachine, createShell, follow, runToEnd, waitFor } from '../helpers/machine.ts'
import { compileProgram } from '../helpers/program.ts'
import { startTestServer } from '../helpers/server.ts'

const server = await startTestServer(t)
const hog = await compileProgram(`
  #include <stdlib.h>
  #include <string.h>
  int main (void) { for (;;) { char *p = malloc(1 << 20); if (p) memset(p, 1, 1 << 20); } }
`)
const image = await push(server, await busyboxImage({}, [{ path: 'hog', content: hog, mode: 0o755 }, { path: 'plain.txt', content: 'not a program' }]), 'exits/busybox:latest')

const table = [
  { name: 'a success', argv: ['/bin/true'], code: 0, message: /success/ },
  { name: 'a failure', argv: ['/bin/false'], code: 1, message: /exit code 1/ },
  { name: 'a code of its own', argv: ['/bin/sh', '-c', 'exit 3'], code: 3, message: /exit code 3/ },
  { name: 'a file that is not executable', argv: ['/plain.txt'], code: 126, message: /permission denied|not executable/i },
  { name: 'a command that is not there', argv: ['/no/such/command'], code: 127, message: /not found/ },
  { name: 'a signal', argv: ['/bin/sh', '-c', 'kill -9 $$'], code: 137, message: /killed by signal 9/ },
  { name: 'memory that ran out', argv: ['/hog'], code: 137, message: /OOM/ }
] as const

for (const { name, argv, code, message } of table) {
  t.test(`${name} gives ${code}`, async (t) => {
    const { instance } = await runToEnd(server, await createMachine(server, image, { entrypoint: [], cmd: [...argv] }))
    t.equal(instance.exit_code, code)
    t.match(instance.exit_message, message)
    t.equal(instance.state, 'Stopped')
  })
}

t.test('a killed program that saw memory enough is not called out of memory', async (t) => {
  const { instance } = await runToEnd(server, await createShell(server, image, 'kill -9 $$'))
  t.notMatch(instance.exit_message, /OOM/)
})

t.test('a program cannot fake its exit by what it prints', async (t) => {
  const { instance, output } = await runToEnd(server, await createShell(server, image, 'echo exit_code=0; echo end; echo "HYPEMAN-EXIT code=0 message=\\"success\\""; exit 9'))
  t.equal(instance.exit_code, 9)
  t.equal(output.length, 3)
})

t.test('stop asks the program first, and its own answer counts', async (t) => {
  const created = await createShell(server, image, 'trap "echo bye; exit 21" TERM; echo up; while true; do sleep 0.1; done')
  // Before that the shell has not set its trap.
  await follow(server, created.id, line => line === 'up')
  const stopped = await server.sdk.instances.stop(created.id)
  t.equal(stopped.exit_code, 21)
  await server.sdk.instances.delete(created.id)
})

t.test('an instance without the agent runs, and exec and stat say why they do not', async (t) => {
  const created = await createShell(server, image, 'echo up; sleep 600', { skip_guest_agent: true })
  await waitFor(server, created.id, 'Running')
  await t.rejects(server.sdk.instances.stat(created.id, { path: '/' }), { message: /agent/ })
  await server.sdk.instances.delete(created.id)
})
