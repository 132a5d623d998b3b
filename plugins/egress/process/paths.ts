// Where the proxy and this plugin keep their files.
import { join } from 'node:path'

export interface EgressPaths {
  /** the server's: no other user writes here */
  readonly folder: string
  readonly config: string
  readonly roots: string
  readonly log: string
  /** the proxy's own, and its working folder, with its key, its log of requests and its socket */
  readonly proxyFolder: string
  readonly controlSocket: string
}

export function pathsOf (dataDir: string): EgressPaths {
  const folder = join(dataDir, 'egress')
  const proxyFolder = join(folder, 'proxy')
  return {
    folder,
    config: join(folder, 'config.json'),
    roots: join(folder, 'roots.pem'),
    log: join(folder, 'proxy.log'),
    proxyFolder,
    controlSocket: join(proxyFolder, 'control.sock')
  }
}
