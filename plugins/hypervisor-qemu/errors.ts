// Failures between Berth and a QEMU process. Each message is a sentence for the operator's log or an instance's `state_error`.
import { defineError } from '../../core/errors/define.ts'

export const QmpClosed = defineError('qmp_closed', 'unavailable', (reason: string) => `the connection to QEMU ended: ${reason}`)

export const QmpTimeout = defineError('qmp_timeout', 'timeout', (command: string, ms: number) => `QEMU did not answer ${command} within ${ms} ms`)

export const QmpRefused = defineError('qmp_refused', 'internal', (command: string, why: string) => `QEMU refused ${command}: ${why}`)

export const NbdFailed = defineError('nbd_failed', 'internal', (why: string) => `QEMU's NBD server cannot be asked: ${why}`)
