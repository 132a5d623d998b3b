// What was seen, as the API answers it.
import type { ProcessUsage } from '../../core/process/usage.ts'
import type { Looked } from './checks.ts'
import type { NewestLines } from './log/lines.ts'
import type { SeenProcess, SeenProcesses } from './processes.ts'
import type { HostChecks, HostLog, HostProcess, HostProcesses } from './schemas.ts'

export function checksView ({ at, tookMs, findings }: Looked): HostChecks {
  return { checked_at: timeOf(at), took_ms: tookMs, checks: [...findings] }
}

export function processesView ({ server: { command: _command, ...server }, processes }: SeenProcesses): HostProcesses {
  return { server: takenView(server), processes: processes.map(processView) }
}

export function logView ({ lines, keptSince }: NewestLines): HostLog {
  return { entries: [...lines], kept_since: keptSince ?? null }
}

function processView ({ kept: { name, plugin, state, restarts, lastEnd, instanceId }, usage, children }: SeenProcess): HostProcess {
  return {
    name,
    plugin,
    instance_id: instanceId ?? null,
    state: usage === undefined ? 'ended' : state,
    pid: usage?.pid ?? null,
    since: usage === undefined ? null : timeOf(usage.since),
    restarts: restarts ?? null,
    last_end: lastEnd === undefined ? null : { at: timeOf(lastEnd.at), reason: lastEnd.reason },
    memory_bytes: usage?.memoryBytes ?? null,
    cpu_seconds: usage?.cpuSeconds ?? null,
    children: children.map(({ command, ...child }) => ({ command, ...takenView(child) }))
  }
}

function takenView ({ pid, since, memoryBytes, cpuSeconds }: Omit<ProcessUsage, 'command'>): HostProcesses['server'] {
  return { pid, since: timeOf(since), memory_bytes: memoryBytes, cpu_seconds: cpuSeconds }
}

function timeOf (ms: number): string {
  return new Date(ms).toISOString()
}
