// Revisions of the policy to a proxy of another version.
import t from 'tap'
import { pino } from 'pino'
import { ControlRefused } from '../../../plugins/egress/control/client.ts'
import { Pusher } from '../../../plugins/egress/policy/pusher.ts'
import type { PolicyRevision } from '../../../proxy/contract/control.ts'

t.test('a proxy from before traces gets the policy without them, and is asked for them anew when another one answers', async (t) => {
  const put: PolicyRevision[] = []
  const lines: string[] = []
  let isOld = true
  let next = 0
  const pusher = new Pusher({
    compose: () => [], denied: async () => [], nextRevision: async () => ++next, tracing: () => ({ passTraceparent: false }), log: pino({}, { write: (line: string) => { lines.push(line) } }),
    put: async (revision) => {
      if (isOld && revision.tracing !== undefined) throw new ControlRefused(400, 'tracing: is no field of it')
      put.push(revision)
    }
  })
  t.teardown(() => { pusher.close() })
  pusher.enable()
  pusher.up(null)
  await pusher.push('a', 1000)
  t.same(put.at(-1)?.tracing, undefined)
  t.match(lines.join(''), /older than this server/)
  isOld = false
  pusher.down()
  pusher.up(null)
  await pusher.push('a', 1000)
  t.same(put.at(-1)?.tracing, { passTraceparent: false })
})
