// The network of a server of one test: servers run beside each other on one host, and each needs addresses and a namespace that no other one has.
import { randomBytes, randomInt } from 'node:crypto'

export interface OwnNetwork {
  /** name of the network namespace that the server makes */
  readonly namespace: string
  /** a network of 256 addresses, such as `10.130.7.0/24`, out of some 33,000 */
  readonly cidr: string
}

export function ownNetwork (): OwnNetwork {
  return { namespace: `berth-test-${randomBytes(4).toString('hex')}`, cidr: `10.${randomInt(120, 250)}.${randomInt(256)}.0/24` }
}
