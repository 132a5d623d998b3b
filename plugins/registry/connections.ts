// The connections to the store, with a limit for each owner: one whose requests do not end, since it sends no bodies or reads no answers, keeps only itself waiting.
import { Agent, type ServerResponse } from 'node:http'

export interface Connections {
  /** The connections of an owner, for one request, which ends with `response`. */
  of (owner: string, response: ServerResponse): Agent
  close (): void
}

const MOST_OF_ONE = 128

interface Own { readonly agent: Agent, requests: number }

export function createConnections (): Connections {
  const owners = new Map<string, Own>()
  return {
    of (owner, response) {
      // A connection for each request: on a unix socket it costs next to nothing, and an upload, which cannot be repeated, never gets a connection that the store is about to close.
      const own = owners.get(owner) ?? { agent: new Agent({ keepAlive: false, maxSockets: MOST_OF_ONE }), requests: 0 }
      owners.set(owner, own)
      own.requests++
      response.once('close', () => { if (--own.requests === 0) owners.delete(owner) })
      return own.agent
    },
    close () {
      for (const { agent } of owners.values()) agent.destroy()
    }
  }
}
