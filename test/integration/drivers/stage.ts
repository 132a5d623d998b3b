// What the steps of the scenario share.
import type { Test } from 'tap'
import type { ServerOptions } from '../../../setup/server/process.ts'
import type { Seen } from '../../helpers/counter.ts'
import type { TestServer } from '../../helpers/server.ts'
import type { Far } from '../egress-enforcement/far/far.ts'

/** of the machine whose life it is */
export const NAME = 'traveller'

export interface Stage {
  readonly server: TestServer
  /** the server's configuration */
  readonly plugins: NonNullable<ServerOptions['plugins']>
  readonly far: Far
  readonly image: string
  readonly driver: string
  /** what the driver can do here, as GET /capabilities says it */
  readonly can: ReadonlySet<string>
  /** what the machine was like when it was looked at last */
  before: Seen
}

/** Whether the driver has it. Where not, the API says so with 501 and the driver's name. */
export async function has (t: Test, { can, driver }: Stage, feature: string, call: () => Promise<unknown>): Promise<boolean> {
  if (can.has(feature)) return true
  await t.rejects(call(), { message: new RegExp(`501.*${driver}`) }, `${feature} is refused by the driver's name`)
  return false
}

export type Step = (t: Test, stage: Stage) => Promise<void>
