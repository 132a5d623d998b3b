// The balloon of a VM: memory that the guest gives up for the host, controlled over QEMU's control connection.
import type { VmBalloon } from '../../core/library/hypervisor.ts'
import { isBalloonSize } from '../../core/library/vmm/balloon-size.ts'
import { isRecord } from '../../core/json/is-record.ts'
import type { QmpClient } from './client.ts'
import { QmpRefused } from './errors.ts'

const TIMEOUT_MS = 5000

/** @param control returns the current connection; throws when there is none */
export function createBalloon (wholeBytes: number, control: () => QmpClient): VmBalloon {
  return {
    wholeBytes,
    async bytes () {
      const answer = await control().execute('query-balloon', {}, TIMEOUT_MS)
      const actual = isRecord(answer) ? answer['actual'] : undefined
      if (!isBalloonSize(actual, wholeBytes)) throw QmpRefused('query-balloon', 'the answer has no size that the guest can have')
      return actual
    },
    async aim (bytes) {
      await control().execute('balloon', { value: Math.min(bytes, wholeBytes) }, TIMEOUT_MS)
    }
  }
}
