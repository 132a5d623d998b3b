// The end of a guest's tracked connections, with what conntrack answers in a race.
import t from 'tap'
import { HostCommandFailed } from '../../../core/process/errors.ts'
import { endConnectionsTo } from '../../../plugins/networking/connections.ts'
import type { NetworkTools } from '../../../plugins/networking/tools.ts'

const GONE = 'conntrack v1.4.7 (conntrack-tools): Operation failed: such conntrack doesn\'t exist'
const NONE = 'conntrack v1.4.7 (conntrack-tools): 0 flow entries have been deleted.'

/** @param answers of conntrack, one for each call: what it says before it exits with 1, or nothing when it has deleted all */
function answering (answers: ReadonlyArray<string | undefined>): { readonly tools: Pick<NetworkTools, 'run'>, readonly calls: () => number } {
  let calls = 0
  return {
    tools: {
      run: async () => {
        const stderr = answers[calls++]
        if (stderr !== undefined) throw new HostCommandFailed({ command: 'conntrack', reason: 'exit', exitCode: 1, signal: undefined, stderr }, 'exited with 1')
        return await Promise.resolve('')
      }
    },
    calls: () => calls
  }
}

const end = async (tools: Pick<NetworkTools, 'run'>): Promise<void> => { await endConnectionsTo(tools as NetworkTools, '10.0.0.2', 'tcp', 80) }

t.test('a connection that ends by itself while it is deleted does not keep the others from being deleted', async (t) => {
  const { tools, calls } = answering([GONE, GONE, undefined])
  await end(tools)
  t.equal(calls(), 3)
})

t.test('nothing to delete is no fault, and anything else is', async (t) => {
  await end(answering([NONE]).tools)
  await t.rejects(end(answering(['conntrack: Operation not permitted']).tools), { message: /not permitted/ })
  const { tools, calls } = answering(Array(100).fill(GONE))
  await t.rejects(end(tools), { message: /doesn't exist/ })
  t.equal(calls(), 10, 'and it is not tried for ever')
})
