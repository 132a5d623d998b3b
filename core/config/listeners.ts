// Checks what no schema can say about the listeners: which keys need each other.
import type { ConfigProblem } from './problems.ts'
import type { ServerConfig } from './schema.ts'

/** The keys that are missing, and those that have no effect. */
export function listenProblems ({ listen, tls }: ServerConfig): ConfigProblem[] {
  if (tls.listen === undefined) {
    const vain = (['certificate', 'key'] as const).filter(key => tls[key] !== undefined).map(key => ({ path: ['server', 'tls', key], rule: 'needs server.tls.listen' }))
    return listen === 'none' ? [...vain, { path: ['server', 'listen'], rule: 'can only be none with server.tls.listen' }] : vain
  }
  return (['certificate', 'key'] as const).filter(key => tls[key] === undefined).map(key => ({ path: ['server', 'tls', key], rule: 'is required with server.tls.listen' }))
}
