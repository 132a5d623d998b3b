// Runs in a new network namespace: brings up its loopback device, listens there, and passes the listener to the server that started it.
import { execFileSync } from 'node:child_process'
import { createServer } from 'node:net'

process.on('disconnect', () => process.exit())
execFileSync('ip', ['link', 'set', 'dev', 'lo', 'up'])
const server = createServer()
server.listen(0, '127.0.0.1', () => {
  // The server opens this process's namespace next, and then ends it.
  process.send?.('listening', server)
})
