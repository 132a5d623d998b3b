// What this process may do, tried, for tests that need it: root of a container may less than root of a host.
import { spawnSync } from 'node:child_process'

function refusal (reason: string, file: string, ...args: readonly string[]): string | false {
  return spawnSync(file, args).status === 0 ? false : reason
}

/** Why nothing can be mounted here, for `skip`; nothing to skip when it can be. */
export const withoutMounts = refusal('this process may mount nothing (not root, or without CAP_SYS_ADMIN)', 'unshare', '--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt')

/** Why no namespace with a network of its own can be made here, not even in a user namespace. */
export const withoutNetworkNamespaces = refusal('this process may make no network namespace', 'unshare', '--net', 'true') === false
  ? false
  : refusal('this process may make neither a network namespace nor a user namespace', 'unshare', '--user', '--map-root-user', '--net', 'true')

/** Why no image can be unpacked here. */
export const withoutUnpacking = process.getuid?.() === 0
  ? false
  : refusal('unpacking images needs root, or user namespaces', 'unshare', '--user', '--map-root-user', 'true')
