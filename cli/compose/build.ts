// `build` of a service.
import { resolve } from 'node:path'
import type { BuildModel } from './model.ts'
import { pairsOf } from './maps.ts'
import type { Place } from './place.ts'
import type { Surroundings } from './surroundings.ts'

export const BUILD_FIELDS = ['context', 'dockerfile', 'dockerfile_inline', 'args', 'target', 'no_cache'] as const

export function buildOf (place: Place, around: Surroundings): BuildModel {
  const fields = place.isMap() ? place.fields(BUILD_FIELDS) : new Map([['context', place]])
  const context = fields.get('context')
  if (context === undefined) throw place.refusal('context is missing')
  const written = context.text()
  if (written.includes('://') || written.startsWith('git@')) throw context.refusal('a context elsewhere is not supported; name a folder')
  const dockerfile = fields.get('dockerfile')
  const inline = fields.get('dockerfile_inline')
  if (dockerfile !== undefined && inline !== undefined) throw inline.refusal('goes without dockerfile')
  const target = fields.get('target')?.text()
  return {
    context: resolve(around.folder, written),
    ...dockerfile === undefined ? {} : { dockerfile: dockerfile.text() },
    ...inline === undefined ? {} : { dockerfileText: inline.text() },
    ...target === undefined ? {} : { target },
    args: argsOf(fields.get('args'), around),
    noCache: fields.get('no_cache')?.flag() ?? false
  }
}

/** An argument without a value takes the value of this shell. */
function argsOf (place: Place | undefined, { variables }: Surroundings): Record<string, string> {
  return Object.fromEntries([...pairsOf(place)].flatMap(([name, value]) => {
    const text = value ?? variables.get(name)
    return text === undefined ? [] : [[name, text] as const]
  }))
}
