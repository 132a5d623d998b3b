// Turns the bodies and queries of requests into requests to the plugin instances, or to this one.
import type { Static } from 'typebox'
import type { CopyRequest, ForkRequest } from '../instances/contract.ts'
import type { ForkSnapshot, ListSnapshotsQuery, RestoreSnapshot } from './schemas.ts'
import type { WantedSnapshots } from './service.ts'

export function copyRequestOf ({ target_hypervisor: hypervisor, target_state: targetState }: Static<typeof RestoreSnapshot>): CopyRequest {
  return { ...(hypervisor === undefined ? {} : { hypervisor }), ...(targetState === undefined ? {} : { targetState }) }
}

export function forkRequestOf ({ name, tags, env, ...target }: Static<typeof ForkSnapshot>, caller?: string): ForkRequest {
  return { name, ...copyRequestOf(target), ...(tags === undefined ? {} : { tags }), ...(env === undefined ? {} : { env }), ...(caller === undefined ? {} : { caller }) }
}

export function listRequestOf ({ source_instance_id: source, ...others }: ListSnapshotsQuery): WantedSnapshots {
  return { ...others, ...(source === undefined ? {} : { source }) }
}
