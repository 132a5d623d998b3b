// `ports` of a service.
import { PORT_RULE, readPort } from '../publish.ts'
import type { Place } from './place.ts'

const PORT_FIELDS = ['target', 'published', 'host_ip', 'protocol'] as const

/** The API's `ports`. A port without an address gets the server's default, which is not reachable from other hosts. */
export function portsOf (place: Place | undefined): object[] {
  return place?.items().map((item) => {
    const text = item.isMap() ? shortForm(item) : item.text()
    const port = readPort(text)
    if (port === undefined) throw item.refusal(`${text} is not ${PORT_RULE}; ranges of ports are not supported`)
    return port
  }) ?? []
}

function shortForm (item: Place): string {
  const fields = item.fields(PORT_FIELDS)
  const part = (name: typeof PORT_FIELDS[number]): string => fields.get(name)?.text() ?? ''
  if (!fields.has('target')) throw item.refusal('target is missing')
  const address = part('host_ip')
  const protocol = part('protocol')
  return `${address === '' ? '' : `${address}:`}${part('published')}:${part('target')}${protocol === '' ? '' : `/${protocol}`}`
}
