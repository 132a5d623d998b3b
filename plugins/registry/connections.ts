// The connections to the store, with a limit for each owner: one whose requests do not end, since it sends no bodies or reads no answers, keeps only itself waiting.
import { Agent } from 'node:http'

export interface Connections {
  /** The connections of an owner, for a request that is made at once. */
  of (owner: string): Agent
  close (): void
}

const MOST_OF_ONE = 128

export function createConnections (): Connections {
  const agents = new Map<string, Agent>()
  return {
    of (owner) {
      for (const [known, agent] of agents) if (known !== owner && isIdle(agent)) agents.delete(known)
      // A connection for each request: on a unix socket it costs next to nothing, and an upload, which cannot be repeated, never gets a connection that the store is about to close.
      const agent = agents.get(owner) ?? new Agent({ keepAlive: false, maxSockets: MOST_OF_ONE })
      agents.set(owner, agent)
      return agent
    },
    close () {
      for (const agent of agents.values()) agent.destroy()
    }
  }
}

function isIdle ({ sockets, requests }: Agent): boolean {
  return Object.keys(sockets).length === 0 && Object.keys(requests).length === 0
}
