// `depends_on` of services, and the order that follows from it.
import type { Condition, Dependency, ServiceModel } from './model.ts'
import { instanceName } from './names.ts'
import type { Place } from './place.ts'

const CONDITIONS = ['service_started', 'service_healthy', 'service_completed_successfully'] as const satisfies readonly Condition[]

export function dependenciesOf (place: Place | undefined, { project, services }: { readonly project: string, readonly services: readonly string[] }): Dependency[] {
  if (place === undefined) return []
  const written: (readonly [string, Place])[] = place.isList() ? place.items().map((item) => [item.text(), item]) : [...place.entries()]
  return written.map(([service, entry]) => {
    const fields = entry.isMap() ? entry.fields(['condition', 'required']) : undefined
    const required = fields?.get('required')?.flag() ?? true
    if (required && !services.includes(service)) throw entry.refusal(`there is no service ${service}`)
    return { service, instance: instanceName(project, service), required, condition: fields?.get('condition')?.oneOf(CONDITIONS) ?? 'service_started' }
  }).filter(({ service }) => services.includes(service))
}

/** A service comes after those that it depends on; otherwise the order is that of the file. */
export function inOrder (services: ReadonlyMap<string, { readonly place: Place, readonly model: ServiceModel }>): ServiceModel[] {
  const done = new Map<string, ServiceModel>()
  const visit = (name: string, above: readonly string[]): void => {
    const found = services.get(name)
    if (done.has(name) || found === undefined) return
    if (above.includes(name)) throw found.place.refusal(`services depend on each other in a circle: ${[...above.slice(above.indexOf(name)), name].join(' → ')}`)
    for (const { service } of found.model.dependsOn) visit(service, [...above, name])
    done.set(name, found.model)
  }
  for (const name of services.keys()) visit(name, [])
  return [...done.values()]
}
