// The description of a copy, and the part of it that only this plugin reads.
import type { MemoryImage } from '../../../core/library/hypervisor.ts'
import type { CopyKind, InstanceCopy } from '../contract.ts'
import type { InstanceRecord, InstanceSpec } from '../model/record.ts'

const VERSION = 1

/** What `InstanceCopy.spec` is. */
export interface CopyDetails {
  /** what the instance was created with */
  readonly created: InstanceSpec
  /** The instance was a fork that had not been told yet that it is a machine of its own, and not the one that it was forked from. */
  readonly newMachine: boolean
}

/** Describes a copy that has been made of an instance. */
export function describeCopy (record: InstanceRecord, kind: CopyKind, memory: MemoryImage | undefined, newMachine: boolean): InstanceCopy {
  const details: CopyDetails = { created: record.spec, newMachine }
  return {
    version: VERSION,
    kind,
    sourceId: record.id,
    sourceName: record.name,
    hypervisor: record.spec.hypervisor,
    image: record.image,
    imageDigest: record.imageDigest,
    spec: details,
    ...(memory === undefined ? {} : { memory })
  }
}

/** @throws when the copy was written by a version of this plugin that this version does not know */
export function detailsOf ({ version, spec }: Pick<InstanceCopy, 'version' | 'spec'>): CopyDetails {
  if (version !== VERSION || !isDetails(spec)) throw new Error(`a copy of an instance is of version ${version}, and not a whole one of version ${VERSION}`)
  return spec
}

function isDetails (value: unknown): value is CopyDetails {
  return isObject(value) && typeof value['newMachine'] === 'boolean' && isObject(value['created']) && typeof value['created']['hypervisor'] === 'string' &&
    typeof value['created']['vcpus'] === 'number' && typeof value['created']['memoryBytes'] === 'number'
}

function isObject (value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
