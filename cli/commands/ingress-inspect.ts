// `berth ingress inspect`
import { path } from '../api/path.ts'
import { inspectEach } from '../output/inspect.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => await inspectEach(session, input.many(0), async (name) => await (await session.api()).call('GET', path`/ingresses/${name}`))
