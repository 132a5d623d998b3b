// Loopback addresses for one test process: VMs, origins and the proxy each have their own, so that tests run beside one another.

/** `127.x.y.last`, the same x and y for everything of this process. */
export function loopback (last: number): string {
  return `127.${1 + process.pid % 250}.${Math.floor(process.pid / 250) % 250}.${last}`
}
