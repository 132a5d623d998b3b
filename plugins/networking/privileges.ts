// Whether this process may make networks at all.
import { existsSync, readFileSync } from 'node:fs'

const TUN_DEVICE = '/dev/net/tun'
const NEEDED = [['CAP_NET_ADMIN', 12n], ['CAP_SYS_ADMIN', 21n]] as const

/** One sentence, or `undefined` when nothing is missing. */
export function missingPrivileges (): string | undefined {
  if (process.getuid?.() !== 0) return 'networks for guests need root'
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
  const missing = NEEDED.filter(([, bit]) => (BigInt(`0x${effective}`) >> bit & 1n) === 0n).map(([name]) => name)
  if (missing.length > 0) return `networks for guests need ${missing.join(' and ')}`
  return existsSync(TUN_DEVICE) ? undefined : `networks for guests need ${TUN_DEVICE}: the kernel's module tun`
}
