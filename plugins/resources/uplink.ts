// The speed of the host's uplink, as its kernel tells it.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'

export interface UplinkRate {
  /** bytes per second; absent: unknown */
  readonly bytesPerSecond?: number
  /** one sentence: why it is unknown */
  readonly reason?: string
}

/** a hundred times the speed of the fastest devices */
const MAX_MEGABITS = 100_000_000
const CONFIGURE = 'plugins.networking.config.bandwidth can say it'

/**
 * @param uplink as in the configuration of networking: an interface, `auto` for that of the default route, or `none`; undefined without that plugin
 * @param root of the file system; tests have their own
 */
export async function uplinkRate (uplink: string | undefined, root = '/'): Promise<UplinkRate> {
  if (uplink === undefined) return { reason: 'the plugin networking does not run' }
  if (uplink === 'none') return { reason: 'guests reach nothing outside (plugins.networking.config.uplink is none)' }
  const device = uplink === 'auto' ? await defaultDevice(root) : uplink
  if (device === undefined) return { reason: `the host has no default route; ${CONFIGURE}` }
  const megabits = Number(await textOf(join(root, 'sys/class/net', device, 'speed')))
  // A link that is down says -1, and so do some virtual ones; others say the same as an unsigned number.
  return Number.isSafeInteger(megabits) && megabits > 0 && megabits <= MAX_MEGABITS ? { bytesPerSecond: megabits * 125_000 } : { reason: `${device} tells no speed; ${CONFIGURE}` }
}

async function defaultDevice (root: string): Promise<string | undefined> {
  const routes = await textOf(join(root, 'proc/net/route'))
  const found = routes?.split('\n').map((line) => line.split('\t')).find(([, destination, , flags]) => destination === '00000000' && (Number.parseInt(flags ?? '0', 16) & 1) === 1)?.[0]
  // The name becomes a part of a path.
  return found === undefined || found.includes('/') || found.startsWith('.') ? undefined : found
}

async function textOf (path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    // A virtual device answers with an error.
    if (hasCode(error, 'ENOENT', 'EINVAL', 'EOPNOTSUPP')) return undefined
    throw error
  }
}
