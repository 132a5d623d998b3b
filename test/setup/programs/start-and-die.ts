// Starts a server in the folder that it is given, prints its pid, and is killed before it can end it.
import { startServer } from '../../../setup/server/process.ts'

const off = Object.fromEntries(['builds', 'devices', 'egress', 'instances', 'pushes', 'snapshots', 'hypervisor-qemu', 'guest'].map((id) => [id, { enabled: false }]))
const server = await startServer({ folder: process.argv[2] ?? '', plugins: off })
process.stdout.write(`${server.pid}\n`, () => process.kill(process.pid, 'SIGKILL'))
