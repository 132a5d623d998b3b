// How large the messages are in which a guest is told what to run: each goes in one frame.
import type { MessageSizes } from '../contract.ts'
import { MAX_BUNDLE_BYTES, MAX_PAYLOAD_BYTES } from './limits.ts'
import { encodeExec, encodeRun } from './messages.ts'

export const messageSizes: MessageSizes = {
  most: MAX_PAYLOAD_BYTES,
  workload: (workload) => encodeRun(workload, new Date(), MAX_BUNDLE_BYTES).length,
  command: (spec) => encodeExec(spec).length
}
