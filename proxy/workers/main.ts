// A worker of berth-egress: it serves the connections of some VMs, and its faults affect only those. See contract.ts.
import { setFlagsFromString } from 'node:v8'
import { createLog } from '../log/log.ts'
import { startWorker, type WorkerProgram } from './program.ts'
import type { FromWorker, ToWorker } from './contract.ts'

const log = createLog(line => { process.stderr.write(line) }, { worker: process.pid })
let program: Promise<WorkerProgram> | undefined

process.umask(0o077)
/**
 * V8 counts the buffers of bodies against a limit that grows with the live objects of its heap, which are few here: after a few seconds of a large transfer it collected all garbage
 * for every ten megabytes that passed, which took more time than the transfer. With a limit of five times the live objects it does not.
 */
setFlagsFromString('--heap-growing-percent=400')
// Ctrl+C and a supervisor's SIGTERM reach every process of a group, but only the parent decides when a worker ends.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
process.on('uncaughtException', fail)
process.on('unhandledRejection', fail)
process.on('disconnect', () => process.exit(0))
process.on('message', (message: ToWorker, handle: unknown) => { take(message, handle).catch(fail) })

async function take (message: ToWorker, handle: unknown): Promise<void> {
  if (message.type !== 'setup') return (await program)?.take(message, handle)
  program = startWorker(message.config, log, say)
  await program
  say({ type: 'ready' })
}

function say (message: FromWorker): void {
  process.send?.(message, undefined, undefined, error => { if (error !== null) process.exit(1) })
}

/** A process in an unknown state must not go on deciding over credentials: the parent starts another one. */
function fail (error: unknown): void {
  log.error('a worker is stopped by a failure', error)
  void program?.then(({ lastLines }) => lastLines(), () => {})
  setImmediate(() => process.exit(1))
}
