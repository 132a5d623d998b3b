// `berth ingress ca`
import { text } from 'node:stream/consumers'
import type { Run } from '../spec.ts'

export const run: Run = async (session) => {
  session.line((await text(await (await session.api()).stream('GET', '/ingress-authority'))).trimEnd())
  return 0
}
