// Opens the listeners. A unix socket of an earlier process is replaced, unless a process still answers on it.
import { chmod, rm } from 'node:fs/promises'
import { connect, type Server } from 'node:net'
import { once } from 'node:events'
import { hasCode } from '../log/error-code.ts'
import type { Place } from './place.ts'

const BACKLOG = 1024

/** Lets a server listen at its place. */
export async function listen (server: Server, place: Place): Promise<void> {
  if (place.kind === 'path') await takeOver(place.path)
  const listening = once(server, 'listening')
  // Node calls listen(2) again on an inherited socket; with `backlog` among the options of this form it would ignore it.
  if (place.kind === 'descriptor') server.listen({ fd: place.descriptor }, BACKLOG)
  else if (place.kind === 'path') server.listen({ path: place.path, backlog: BACKLOG })
  else server.listen({ host: place.host, port: place.port, backlog: BACKLOG })
  await listening
  if (place.kind === 'path') await chmod(place.path, 0o600)
}

async function takeOver (path: string): Promise<void> {
  const probe = connect(path)
  try {
    await once(probe, 'connect')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    if (hasCode(error, 'ECONNREFUSED')) return await rm(path)
    throw error
  } finally {
    probe.destroy()
  }
  throw new Error(`${path}: another proxy listens there`)
}
