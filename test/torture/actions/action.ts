// What an action is: a call, or a few that belong together, with everything about it chosen before it runs.
import type { Random } from '../../fuzz/fuzz.ts'
import type { World } from '../world.ts'

export interface Action {
  /** what was chosen, for the log */
  readonly text: string
  /** Gives what came of it, for the log. What was chosen may not exist: then that is the answer. */
  run (world: World): Promise<string>
}

export type Choose = (random: Random) => Action

/** Few names, so that calls meet. */
export const VMS = ['vm-0', 'vm-1', 'vm-2'] as const
export const VOLUMES = ['volume-0', 'volume-1'] as const
export const SNAPSHOTS = ['snapshot-0', 'snapshot-1'] as const
export const IMAGES = ['image-0', 'image-1'] as const
export const BUILDERS = ['builder-0', 'builder-1'] as const
export const INGRESSES = ['site-0', 'site-1'] as const
/** of the host, for programs of instances */
export const HOST_PORTS = [20_080, 20_081] as const
/** where the guests' program that serves listens */
export const PROGRAM_PORT = 8000

/** An action that is one call without anything to remember. */
export function plainCall (text: string, method: string, path: string, body?: unknown): Action {
  return { text, run: async (world) => (await world.call(method, path, body)).summary }
}
