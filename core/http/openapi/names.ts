// Names the operations of the document by method and path, where the route gives no name: generators turn them into names of methods.

/** GET of these returns one thing, though the names look like plurals. */
const SINGLE = new Set(['capabilities', 'resources', 'logs', 'stats', 'events', 'status', 'plugins'])
const VERBS: Readonly<Record<string, string>> = { GET: 'get', POST: 'create', PUT: 'set', PATCH: 'update', DELETE: 'delete' }

/** `GET /instances` → `listInstances`, `POST /instances/:id/stop` → `stopInstance`, `DELETE /volumes/:id` → `deleteVolume` */
export function operationIdOf (method: string, url: string): string {
  const parts = url.split('/').filter((part) => part !== '')
  const last = parts.at(-1) ?? ''
  const nouns = parts.filter((part) => !isParameter(part))
  const verb = VERBS[method] ?? method.toLowerCase()
  if (isParameter(last)) return verb + nouns.map((noun) => pascal(singular(noun))).join('')
  const owners = nouns.slice(0, -1).map((noun) => pascal(singular(noun))).join('')
  if (isCollection(last)) return method === 'GET' ? `list${owners}${pascal(last)}` : `${verb}${owners}${pascal(singular(last))}`
  const isAction = method === 'POST' && isParameter(parts.at(-2) ?? '')
  return isAction ? `${camel(last)}${owners}` : `${verb}${owners}${pascal(last)}`
}

/** `listInstances` → `List instances` */
export function summaryOf (operationId: string): string {
  const words = operationId.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function isParameter (part: string): boolean {
  return part.startsWith(':')
}

function isCollection (part: string): boolean {
  return part.endsWith('s') && !SINGLE.has(part)
}

function singular (noun: string): string {
  return isCollection(noun) ? noun.slice(0, -1) : noun
}

function pascal (part: string): string {
  return part.split('-').map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

function camel (part: string): string {
  const name = pascal(part)
  return name.charAt(0).toLowerCase() + name.slice(1)
}
