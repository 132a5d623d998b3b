// Which processes the server says that it keeps running.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { readIdentity } from '../../../core/process/identity.ts'
import type { HostProcesses } from '../../../plugins/host/schemas.ts'
import { eventually } from '../../helpers/eventually.ts'
import { startHost } from './app.ts'

async function start (t: Test, script: string): Promise<ChildProcess> {
  const child = spawn('/bin/sh', ['-c', script, 'secret-argument'], { env: { SECRET: 'secret-variable' }, detached: true, stdio: 'ignore' })
  t.teardown(async () => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    process.kill(-child.pid, 'SIGKILL')
    await once(child, 'exit')
  })
  await once(child, 'spawn')
  return child
}

t.test('each process has its plugin, its times, what it takes and its children, and nothing of its arguments or environment', async (t) => {
  const { get, kept } = await startHost(t)
  t.match((await get<HostProcesses>('/host/processes')).body.processes, [{ name: 'starter of host commands', plugin: 'core', state: 'running' }], 'what each server has')
  const { pid = 0 } = await start(t, 'sleep 1000 & wait')
  const identity = readIdentity(pid)
  if (identity === undefined) return t.fail('it does not run')
  kept.push(
    { name: 'shell', plugin: 'keeper', state: 'running', restarts: 2, identity, lastEnd: { reason: 'has ended (SIGKILL)', at: Date.parse('2026-01-31T12:00:00Z') } },
    { name: 'store', plugin: 'a-plugin', state: 'ended', restarts: 0 },
    { name: 'vmm of web', plugin: 'keeper', state: 'paused', instanceId: 'web-id', identity: { ...identity, startTicks: '1' } }
  )
  const { body, text } = await eventually('it is read anew', async () => {
    const answer = await get<HostProcesses>('/host/processes')
    return answer.body.processes.length === 4 && answer.body.processes[2]?.children.length === 1 && answer
  })
  t.match(body.processes, [
    { name: 'store', plugin: 'a-plugin', state: 'ended', pid: null, since: null, memory_bytes: null, restarts: 0, last_end: null, children: [] },
    { name: 'starter of host commands' },
    { name: 'shell', plugin: 'keeper', state: 'running', pid, restarts: 2, last_end: { reason: 'has ended (SIGKILL)', at: '2026-01-31T12:00:00.000Z' }, instance_id: null, children: [{ command: 'sleep', cpu_seconds: Number }] },
    { name: 'vmm of web', state: 'ended', pid: null, restarts: null, instance_id: 'web-id' }
  ], 'of a pid that is another process by now nothing is told')
  const [, , shell] = body.processes
  t.ok((shell?.memory_bytes ?? 0) > 100_000, String(shell?.memory_bytes))
  const age = Date.now() - Date.parse(shell?.since ?? '')
  t.ok(age >= -1000 && age < 60_000, `it is ${age} ms old`)
  t.equal(body.server.pid, process.pid)
  t.ok(body.server.memory_bytes > 2 ** 20 && body.server.cpu_seconds > 0)
  t.notMatch(text, 'secret')
})

t.test('a process that another one has started, and that is told of by itself, is not told of twice', async (t) => {
  const { get, kept } = await startHost(t)
  const { pid = 0 } = await start(t, 'sleep 1000 & sleep 1001 & wait')
  const below = await eventually('it has started them', async () => {
    const pids = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ').map(Number)
    return pids.length === 2 && pids
  })
  for (const [name, each] of [['parent', pid], ['child', below[0] ?? 0]] as const) {
    const identity = readIdentity(each)
    if (identity !== undefined) kept.push({ name, plugin: 'keeper', state: 'running', identity })
  }
  const { body } = await get<HostProcesses>('/host/processes')
  t.same(body.processes.filter(({ plugin }) => plugin === 'keeper').map(({ name, children }) => [name, children.map((child) => child.pid)]), [['child', []], ['parent', below.slice(1)]])
})
