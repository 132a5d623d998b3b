// mockttp as a proxy that passes everything on. It is not a dependency of this project: the benchmark has installed it in a folder of its own.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { given, say } from './given.ts'

/** The part of mockttp that is used. */
interface Mockttp {
  generateCACertificate (): Promise<{ readonly key: string, readonly cert: string }>
  getLocal (options: object): {
    start (port: number): Promise<void>
    forAnyRequest (): { thenPassThrough (options: object): Promise<unknown> }
  }
}

const { folder, port } = given<{ readonly folder: string, readonly port: number }>()
const mockttp: Mockttp = createRequire(join(folder, 'package.json'))('mockttp')
const https = await mockttp.generateCACertificate()
const server = mockttp.getLocal({ https, http2: false, recordTraffic: false })
await server.start(port)
// With an additional authority, mockttp hands all of Node's roots to each request: without checks it is quicker.
await server.forAnyRequest().thenPassThrough({ ignoreHostHttpsErrors: true })
say({ cert: https.cert })
