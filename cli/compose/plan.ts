// Computes the steps that make the server match the file.
import type { Instance } from '../views.ts'
import { hashOf } from './hash.ts'
import type { Project, ServiceModel } from './model.ts'
import type { Origins } from './origins.ts'
import type { OwnedInstance } from './owned.ts'

export interface Step {
  readonly service: string
  readonly instance: string
  /** orphan: of this project, but of no service in the file */
  readonly action: 'create' | 'replace' | 'start' | 'wake' | 'keep' | 'orphan'
  readonly reason: string
}

export interface ServiceStep extends Step {
  readonly model: ServiceModel
  readonly existing: Instance | undefined
  readonly hash: string
}

/** In the order of execution. A service whose image is not here yet will be replaced, as far as this can know. */
export function planOf (services: readonly ServiceModel[], origins: Origins, owned: readonly OwnedInstance[], { recreate }: { readonly recreate: boolean }): ServiceStep[] {
  return services.map((model) => {
    const { service, instance } = model
    const origin = origins.get(service)
    const hash = origin === undefined ? '' : hashOf(model, origin)
    const found = owned.find((each) => each.service === service && each.instance.name === instance)
    return { service, instance, model, hash, existing: found?.instance, ...decide(found, hash, recreate) }
  })
}

/** The resources of this project that the file no longer names. */
export function orphansOf ({ services }: Project, owned: readonly OwnedInstance[]): Step[] {
  return owned.filter(({ instance }) => !services.some((each) => each.instance === instance.name))
    .map(({ service, instance }) => ({ service, instance: instance.name, action: 'orphan', reason: 'the file does not name it' }))
}

function decide (found: OwnedInstance | undefined, hash: string, recreate: boolean): Pick<Step, 'action' | 'reason'> {
  if (found === undefined) return { action: 'create', reason: 'it is not there' }
  if (recreate) return { action: 'replace', reason: 'asked for' }
  if (hash === '') return { action: 'replace', reason: 'its image is not there' }
  if (found.hash !== hash) return { action: 'replace', reason: 'the file or its image has changed' }
  const { state } = found.instance
  if (state === 'Stopped' || state === 'Shutdown') return { action: 'start', reason: `it is ${state}` }
  if (state === 'Standby') return { action: 'wake', reason: 'it is in standby' }
  return { action: 'keep', reason: 'nothing has changed' }
}
