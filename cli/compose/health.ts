// `healthcheck` of a service.
import { parseDuration } from '../../core/units.ts'
import type { Place } from './place.ts'

export const HEALTH_FIELDS = ['test', 'interval', 'timeout', 'retries', 'start_period', 'disable'] as const

/** The API's `health_check`; undefined for none. Fields that are not given keep the server's defaults. */
export function healthOf (place: Place | undefined): object | undefined {
  const fields = place?.fields(HEALTH_FIELDS)
  if (place === undefined || fields === undefined || fields.get('disable')?.flag() === true) return undefined
  const test = fields.get('test')
  if (test === undefined) throw place.refusal('test is missing', 'images have no health checks of their own here')
  const command = commandOf(test)
  if (command === undefined) return undefined
  return {
    type: 'exec',
    exec: { command },
    ...durationOf('interval', fields.get('interval')),
    ...durationOf('timeout', fields.get('timeout')),
    ...durationOf('start_period', fields.get('start_period')),
    ...fields.get('retries') === undefined ? {} : { failure_threshold: fields.get('retries')?.integer(1) }
  }
}

function commandOf (test: Place): string[] | undefined {
  if (!test.isList()) return ['/bin/sh', '-c', test.text()]
  const [kind, ...rest] = test.items().map((item) => item.text())
  if (kind === 'NONE') return undefined
  if (kind === 'CMD' && rest.length > 0) return rest
  if (kind === 'CMD-SHELL' && rest.length === 1) return ['/bin/sh', '-c', ...rest]
  throw test.refusal('must be a text, or a list that begins with CMD, CMD-SHELL or NONE')
}

/** A field of the API with a duration as text; an absent duration gives no field. */
export function durationOf (name: string, place: Place | undefined): object {
  if (place === undefined) return {}
  const text = place.text()
  if (parseDuration(text) === undefined) throw place.refusal('must be a duration, as 30s or 1m30s')
  return { [name]: text }
}
