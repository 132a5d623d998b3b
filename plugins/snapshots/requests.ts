// Turns the bodies of requests into requests to the plugin instances.
import type { Static } from 'typebox'
import type { CopyRequest, ForkRequest } from '../instances/contract.ts'
import type { ForkSnapshot, RestoreSnapshot } from './schemas.ts'

export function copyRequestOf ({ target_hypervisor: hypervisor, target_state: targetState }: Static<typeof RestoreSnapshot>): CopyRequest {
  return { ...(hypervisor === undefined ? {} : { hypervisor }), ...(targetState === undefined ? {} : { targetState }) }
}

export function forkRequestOf ({ name, tags, env, ...target }: Static<typeof ForkSnapshot>, caller?: string): ForkRequest {
  return { name, ...copyRequestOf(target), ...(tags === undefined ? {} : { tags }), ...(env === undefined ? {} : { env }), ...(caller === undefined ? {} : { caller }) }
}
