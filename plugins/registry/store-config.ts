// The configuration of docker-registry.
import { stringify } from 'yaml'

export interface StoreSettings {
  readonly storeFolder: string
  /** name of the socket in the store's working folder: a full path may be too long for a socket */
  readonly socket: string
  /** signs the state of uploads that clients keep */
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
      // leftovers of broken pushes
      maintenance: { uploadpurging: { enabled: true, age: '48h', interval: '6h', dryrun: false } }
    },
    // Relative: the client's own name for this server stays valid, whatever is in between.
    http: { net: 'unix', addr: socket, relativeurls: true, secret }
  })
}
