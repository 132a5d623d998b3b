// Facts that the demo machine reports, and a check that they can only be true in a VM of its own.

/** Runs in the guest. Each line is a fact that the host cannot know before. */
export const factsScript = [
  'echo "kernel: $(uname -r)"',
  'echo "memory: $(awk \'/^MemTotal/ { print $2 }\' /proc/meminfo) kB"',
  'echo "uptime: $(cut -d" " -f1 /proc/uptime) s"',
  'echo "boot: $(cat /proc/sys/kernel/random/boot_id)"'
].join('; ')

export interface HostFacts {
  readonly bootId: string
  readonly uptimeSeconds: number
  /** memory that the machine was given */
  readonly givenBytes: number
}

/** What is wrong with the lines that the machine printed; empty when all are right. */
export function checkFacts (lines: readonly string[], host: HostFacts): string[] {
  const fact = (name: string): string | undefined => lines.find(line => line.startsWith(`${name}: `))?.slice(name.length + 2)
  const kernel = fact('kernel')
  const memoryBytes = Number(fact('memory')?.replace(' kB', '')) * 1024
  const uptimeSeconds = Number(fact('uptime')?.replace(' s', ''))
  const boot = fact('boot')
  return [
    kernel === undefined || kernel === '' ? 'it did not tell its kernel' : '',
    memoryBytes > host.givenBytes * 0.6 && memoryBytes <= host.givenBytes ? '' : `it sees ${memoryBytes} bytes of memory where it was given ${host.givenBytes}`,
    uptimeSeconds > 0 && uptimeSeconds < 600 ? '' : `it says that it has run for ${uptimeSeconds} s`,
    boot === undefined || boot === '' || boot === host.bootId ? 'its boot is not a boot of its own' : ''
  ].filter(problem => problem !== '')
}
