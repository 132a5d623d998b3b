// The shapes of answers about the host, and of what is asked.
import { Type, type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../core/http/schemas.ts'

const closed = { additionalProperties: false } as const

export const HostChecks = Type.Object({
  checked_at: Timestamp,
  took_ms: Type.Integer(),
  checks: Type.Array(Type.Object({
    subject: Type.String({ description: 'What was looked at', examples: ['KVM'] }),
    verdict: oneOf(['ok', 'warning', 'failed']),
    found: Type.String({ examples: ['/dev/kvm can be used: a VM has run its first program'] }),
    remedy: Type.Optional(Type.String({ description: 'What to do; absent when all is well' }))
  }, closed))
}, { ...closed, $id: 'HostChecks' })
export type HostChecks = Static<typeof HostChecks>

const Taken = {
  memory_bytes: Type.Integer({ description: 'Memory that it holds; pages that processes share count for each of them' }),
  cpu_seconds: Type.Number({ description: 'Processor time since its start' })
}

export const HostProcess = Type.Object({
  name: Type.String({ description: 'What it is, for people', examples: ['registry store'] }),
  plugin: Type.String({ description: 'Whose process it is', examples: ['registry'] }),
  instance_id: nullable(Type.String({ description: 'The instance that it runs for' })),
  state: oneOf(['running', 'paused', 'hung', 'ended'], { description: 'hung: it does not answer; ended: it is about to be started again' }),
  pid: nullable(Type.Integer()),
  since: nullable(Timestamp),
  restarts: nullable(Type.Integer({ description: 'How often this server has started it again; null where that is not counted' })),
  last_end: nullable(Type.Object({ at: Timestamp, reason: Type.String({ examples: ['has ended (SIGKILL)'] }) }, closed)),
  memory_bytes: nullable(Taken.memory_bytes),
  cpu_seconds: nullable(Taken.cpu_seconds),
  children: Type.Array(Type.Object({ pid: Type.Integer(), command: Type.String({ examples: ['nginx'] }), since: Timestamp, ...Taken }, closed), { description: 'Processes that it has started, such as its workers; at most 64' })
}, { ...closed, $id: 'HostProcess' })
export type HostProcess = Static<typeof HostProcess>

export const HostProcesses = Type.Object({
  server: Type.Object({ pid: Type.Integer(), since: Timestamp, ...Taken }, { ...closed, description: 'The server itself' }),
  processes: Type.Array(HostProcess)
}, { ...closed, $id: 'HostProcesses' })
export type HostProcesses = Static<typeof HostProcesses>

export const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const
export type Level = typeof LEVELS[number]

export const HostLogLine = Type.Object({
  id: Type.String({ description: 'Its place in the log of this run of the server' }),
  time: Timestamp,
  level: oneOf(LEVELS),
  message: Type.String({ examples: ['listening'] }),
  fields: Type.Record(Type.String(), Type.Unknown(), { description: 'All else that the line says, as it was written: secrets are masked. Of a line that is too long to be kept as a whole, cut says how many characters it had', examples: [{ pid: 1234, url: 'http://127.0.0.1:8080' }] })
}, { ...closed, $id: 'HostLogLine' })
export type HostLogLine = Static<typeof HostLogLine>

export const HostLog = Type.Object({
  entries: Type.Array(HostLogLine, { description: 'Oldest first' }),
  kept_since: nullable(Type.String({ format: 'date-time', description: 'Time of the oldest line that the server still has' }))
}, { ...closed, $id: 'HostLog' })
export type HostLog = Static<typeof HostLog>

const Level = oneOf(LEVELS, { description: 'The least important level; all without it' })

export const HostLogQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000, description: 'The newest so many; 200 without it' })),
  level: Type.Optional(Level),
  since: Type.Optional(Type.String({ format: 'date-time', description: 'Only what was written then, or later' }))
}, closed)
export type HostLogQuery = Static<typeof HostLogQuery>

export const FollowQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000, description: 'How many of the lines that are there already come first; 200 without it' })),
  level: Type.Optional(Level)
}, closed)
