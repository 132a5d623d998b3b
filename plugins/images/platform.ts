// Selects the variant of an image that this host can run.
import { ociArchitecture } from '../../core/library/oci/architecture.ts'
import { InvalidPlatform } from './errors.ts'

export interface Platform { readonly os: string, readonly architecture: string, readonly variant?: string | undefined }

/** The platform of this host, in OCI's terms. VMs run Linux, whatever the host runs. */
export function hostPlatform (nodeArch: string = process.arch): Platform {
  return { os: 'linux', architecture: ociArchitecture(nodeArch) }
}

export function formatPlatform (platform: Platform): string {
  return [platform.os, platform.architecture, ...platform.variant === undefined || platform.variant === '' ? [] : [platform.variant]].join('/')
}

/**
 * Checks a `platform` that a caller asked for.
 * @throws InvalidPlatform when it is invalid or this host cannot run it
 */
export function checkPlatform (written: string, host: Platform): void {
  const [os, architecture, variant, ...more] = written.split('/')
  if (!/^[a-z0-9]+(\/[a-z0-9]+){1,2}$/.test(written) || more.length > 0 || os === undefined || architecture === undefined) {
    throw InvalidPlatform(`"${written}" is not os/arch or os/arch/variant`)
  }
  if (os !== host.os || architecture !== host.architecture) {
    throw InvalidPlatform(`this host runs ${formatPlatform(host)}, not ${written}`)
  }
  if (variant !== undefined && !isBaseline({ os, architecture, variant })) {
    throw InvalidPlatform(`the variant ${variant} cannot be asked for; write ${formatPlatform(host)}`)
  }
}

/** The entry to use: the one without a variant first, since every processor of the architecture runs it. */
export function choosePlatform<T extends { readonly platform?: Platform | undefined }> (entries: readonly T[], host: Platform): T | undefined {
  const fitting = entries.filter((entry) => entry.platform?.os === host.os && entry.platform.architecture === host.architecture)
  return fitting.find((entry) => entry.platform !== undefined && isBaseline(entry.platform)) ?? fitting[0]
}

function isBaseline (platform: Platform): boolean {
  const plain = platform.architecture === 'arm64' ? 'v8' : 'v1'
  return platform.variant === undefined || platform.variant === '' || platform.variant === plain
}
