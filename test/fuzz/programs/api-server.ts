// The whole server with the plugins that this host lets it have, for requests that come over a unix socket: it is started where there is no network, since names of
// images and of targets would lead out of the machine.
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { buildApp } from '../../../core/app.ts'
import { withoutDeleted } from '../../../setup/structure/deleted.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { fakePlugin } from '../../hypervisor-fake/plugin.ts'

const [folder = ''] = process.argv.slice(2)
const dataDir = join(folder, 'data')
mkdirSync(dataDir, { recursive: true, mode: 0o711 })

const app = await buildApp({
  log: { level: 'warn' },
  server: { dataDir, listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { enabled: false, listen: '127.0.0.1:0' } },
  plugins: withoutDeleted({
    networking: { enabled: false }, 'hypervisor-qemu': { enabled: false }, guest: { config: { prepare: false } }, builds: { config: { prepare: false } }, instances: { config: { templates: { enabled: false } } }
  })
}, { environment: {}, folder: dataDir, plugins: [fakePlugin('qemu')] })
await app.start({ listen: false })
const door = createServer(socket => { app.http.server.emit('connection', socket) })
door.listen(join(folder, 'api.sock'), () => { process.stdout.write(`${JSON.stringify({ pid: process.pid })}\n`) })
// The end of the one who started it is the end of its input.
process.stdin.resume().on('end', () => {
  door.close()
  void app.stop().then(() => process.exit(0))
})
