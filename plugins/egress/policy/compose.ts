// Makes the proxy's policy of one VM: the only place where real values are opened.
import type { Secrets } from '../../../core/contracts/services.ts'
import type { InjectRule, VmPolicy } from '../../../proxy/contract/control.ts'
import type { EgressSpec } from '../../instances/egress/contract.ts'
import { mockOf } from '../validate/text.ts'
import { purposeOf } from './purpose.ts'

/** A VM whose policy is to be enforced. */
export interface Enforced {
  readonly instanceId: string
  readonly address: string
  readonly epoch: string
  readonly spec: EgressSpec
}

/**
 * @param onUnavailable is called for a value that cannot be opened. The proxy then refuses the requests that need it; the VM's other requests work
 */
export function composeVm ({ instanceId, address, epoch, spec }: Enforced, secrets: Secrets, onUnavailable: (error: unknown) => void): VmPolicy {
  const values = new Map(Object.entries(spec.sealed).map(([name, sealed]) => [name, openValue(name, sealed)]))
  return {
    id: instanceId,
    address,
    epoch,
    mode: spec.mode,
    rules: Object.entries(spec.credentials).flatMap(([credential, { source, inject }]) => inject.map(({ hosts, as }): InjectRule => ({
      credential,
      ...hosts === undefined ? {} : { hosts },
      header: as.header,
      format: as.format,
      value: values.get(source.env) ?? '',
      mock: mockOf(credential)
    })))
  }

  function openValue (name: string, sealed: string): string {
    try {
      return secrets.open(purposeOf(name), sealed)
    } catch (error) {
      onUnavailable(error)
      return ''
    }
  }
}
