// The sockets that systemd passes to a service: descriptors from 3 on, with a name each (sd_listen_fds(3)).

const FIRST = 3

/** Name → descriptor. Empty when nothing was passed, or when it was meant for another process. */
export function inheritedSockets (environment: Readonly<Record<string, string | undefined>>, pid: number): ReadonlyMap<string, number> {
  const count = Number(environment['LISTEN_FDS'] ?? 0)
  if (environment['LISTEN_PID'] !== String(pid) || !Number.isInteger(count)) return new Map()
  const names = (environment['LISTEN_FDNAMES'] ?? '').split(':')
  return new Map(Array.from({ length: count }, (_, index) => [names[index] ?? `fd${index}`, FIRST + index]))
}
