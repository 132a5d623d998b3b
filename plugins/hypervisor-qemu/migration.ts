// Shared code for moving a VM's state out of QEMU and into it. QEMU calls that migration.
import { isRecord } from '../../core/json/is-record.ts'
import { reasonIn, type QmpClient } from './client.ts'
import { QmpTimeout } from './errors.ts'

const COMMAND_TIMEOUT_MS = 5000
// More than any memory bus: QEMU's default of 128 MiB/s is meant for networks.
const BYTES_PER_SECOND = 2 ** 40

/** Both sides must agree on these: memory that is shared with a file stays out of the state, and every step has an event. */
export async function prepareMigration (qmp: QmpClient): Promise<void> {
  const capabilities = ['x-ignore-shared', 'events'].map((capability) => ({ capability, state: true }))
  await Promise.all([
    qmp.execute('migrate-set-capabilities', { capabilities }, COMMAND_TIMEOUT_MS),
    // A restored VM announces nothing: it could announce only its addresses at the capture, which a clone no longer has once its guest wakes.
    qmp.execute('migrate-set-parameters', { 'max-bandwidth': BYTES_PER_SECOND, 'announce-rounds': 0 }, COMMAND_TIMEOUT_MS)
  ])
}

export interface Migration {
  /** Resolves once all of the state has passed; rejects when that failed or took too long. */
  readonly done: Promise<void>
  /** Stops listening; `done` stays unsettled then. */
  stop (): void
}

/** Listens for the end of a migration that is about to be started. @param failed makes the error */
export function watchMigration (qmp: QmpClient, timeoutMs: number, failed: (why: string) => Error): Migration {
  let stop = (): void => {}
  const done = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(QmpTimeout('its migration', timeoutMs)), timeoutMs)
    const unsubscribe = qmp.onEvent((name, { status }) => {
      if (name !== 'MIGRATION') return
      if (status === 'completed') resolve()
      if (status === 'failed' || status === 'cancelled') whyOf(qmp).then((why) => reject(failed(why)), reject)
    })
    stop = () => { clearTimeout(timer); unsubscribe() }
    qmp.closed.then((reason) => reject(failed(reason)), reject)
  })
  done.catch(() => {})
  return { done, stop }
}

async function whyOf (qmp: QmpClient): Promise<string> {
  const answer = await qmp.execute('query-migrate', {}, COMMAND_TIMEOUT_MS).catch((error: unknown) => ({ 'error-desc': String(error) }))
  return (isRecord(answer) ? reasonIn(answer['error-desc']) : undefined) ?? 'QEMU gave up without a reason'
}
