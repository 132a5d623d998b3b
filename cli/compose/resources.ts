// `deploy.resources` of a service: the size of its VM.
import { formatSize, parseSize } from '../../core/units.ts'
import type { Place } from './place.ts'

const DEPLOY_FIELDS = ['resources'] as const

/** Fields of the API. */
export function resourcesOf (deploy: Place | undefined): object {
  const limits = deploy?.fields(DEPLOY_FIELDS).get('resources')?.fields(['limits'], { reservations: 'a VM has what limits says' }).get('limits')?.fields(['cpus', 'memory'])
  const cpus = limits?.get('cpus')
  const memory = limits?.get('memory')
  return { ...cpus === undefined ? {} : { vcpus: vcpusOf(cpus) }, ...memory === undefined ? {} : { size: sizeOf(memory) } }
}

function vcpusOf (place: Place): number {
  const value = Number(place.text())
  if (!Number.isInteger(value) || value < 1) throw place.refusal('must be a whole number, since a VM has whole vCPUs')
  return value
}

function sizeOf (place: Place): string {
  const bytes = parseSize(place.text())
  if (bytes === undefined || bytes === 0) throw place.refusal('must be a size, as 512M or 1gb')
  return formatSize(bytes)
}
