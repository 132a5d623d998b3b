// A command in the guest: the three streams of its channel, its result, and the ways to act on it while it runs.
import type { ExecResult, ExecSession } from '../contract.ts'
import type { Channel } from './channel.ts'

export function execSession (channel: Channel<ExecResult>): ExecSession {
  const stdout = channel.output(1)
  const stderr = channel.output(2)
  return {
    stdin: channel.input,
    stdout,
    stderr,
    result: resultAfter(channel, [stdout, stderr]),
    resize: async (rows, cols) => { await channel.controlInTurn({ op: 'resize', rows, cols }) },
    signal: async (signal) => { await channel.controlInTurn({ op: 'signal', signal }) },
    cancel: () => { channel.control({ op: 'cancel' }) }
  }
}

function resultAfter (channel: Channel<ExecResult>, outputs: ReadonlyArray<{ drained (): Promise<void> }>): Promise<ExecResult> {
  const result = channel.result.then(async (value) => {
    for (const output of outputs) await output.drained()
    return value
  })
  // As for the channel's own result: nobody may be waiting any more.
  result.catch(() => {})
  return result
}
