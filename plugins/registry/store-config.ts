// The configuration of docker-registry.
import { stringify } from 'yaml'

export interface StoreSettings {
  readonly storeFolder: string
  /** name of the socket in the store's working folder: a whole path may be longer than a socket's may be */
  readonly socket: string
  /** signs the state of uploads that is handed to clients */
  readonly secret: string
}

/** The YAML file that docker-registry reads. */
export function storeConfig ({ storeFolder, socket, secret }: StoreSettings): string {
  return stringify({
    version: '0.1',
    log: { level: 'warn', accesslog: { disabled: true } },
    storage: {
      filesystem: { rootdirectory: storeFolder },
      delete: { enabled: true },
      // what broken pushes leave
      maintenance: { uploadpurging: { enabled: true, age: '48h', interval: '6h', dryrun: false } }
    },
    // Relative: the client's own name for this server stays valid, whatever stands in between.
    http: { net: 'unix', addr: socket, relativeurls: true, secret }
  })
}
