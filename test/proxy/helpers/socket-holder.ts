// Does for a test what systemd does: holds listening sockets, starts the proxy with them, and starts it again when it ends.
// It waits for the proxy without running its own event loop, so that it never takes a connection itself.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { createServer, type Server } from 'node:net'

const [address = '', controlPath = '', main = '', configFile = ''] = process.argv.slice(2)
const servers = [createServer().listen(0, address), createServer().listen(0, address), createServer().listen(controlPath)]
await Promise.all(servers.map(async server => await once(server, 'listening')))
writeSync(1, `${JSON.stringify(servers.slice(0, 2).map(portOf))}\n`)
const descriptors = servers.map(descriptorOf)
const env = { ...process.env, LISTEN_FDS: '3', LISTEN_FDNAMES: 'http:https:control' }
for (let starts = 0; starts < 2; starts++) {
  spawnSync('/bin/sh', ['-c', 'LISTEN_PID=$$ exec "$@"', 'sh', process.execPath, main, '--config', configFile], { stdio: ['ignore', 'inherit', 2, ...descriptors], env })
}
process.exit(0)

function portOf (server: Server): number {
  const place = server.address()
  return typeof place === 'object' && place !== null ? place.port : 0
}

/** Node tells nobody which descriptor a server has; a program that passes it on has to look. */
function descriptorOf (server: Server): number {
  const handle: unknown = Reflect.get(server, '_handle')
  return typeof handle === 'object' && handle !== null ? Number(Reflect.get(handle, 'fd')) : -1
}
