// `berth host processes`
import { age, size } from '../output/values.ts'
import type { Run } from '../spec.ts'
import type { HostProcesses } from '../views.ts'

export const run: Run = async (session) => {
  const answer = await (await session.api()).call<HostProcesses>('GET', '/host/processes')
  await session.print(answer, {
    headings: ['PROCESS', 'PLUGIN', 'STATE', 'PID', 'SINCE', 'RESTARTS', 'MEMORY', 'CPU', 'LAST END'],
    rows: answer.processes.map(({ name, plugin, state, pid, since, restarts, memory_bytes: memory, cpu_seconds: cpu, last_end: end }) => [
      name, plugin, state, String(pid ?? '-'), age(since), String(restarts ?? '-'), size(memory), cpu === null ? '-' : `${cpu} s`, end === null ? '-' : `${end.reason}, ${age(end.at)}`
    ])
  })
  return 0
}
