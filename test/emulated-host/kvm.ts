// Runs a file of tests of this package on a host with KVM: here, where KVM works, else on an emulated one. Its results become results of the caller's test, one by one.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { guestSystem, makeDriver } from '../plugins/hypervisor-qemu/machine.ts'
import { beatTo, whileItBeats } from './beats.ts'
import { follow } from './follow.ts'
import { runOnHost, type HostOptions } from './host.ts'
import { lastLines } from './last-lines.ts'
import { replay } from './replay.ts'
import { EMULATED, UNDER_KVM } from './slow.ts'

const MODULES = ['kvm_amd', 'tun', 'vhost_net', 'loop']

export interface KvmTest extends Pick<HostOptions, 'data' | 'processors' | 'memoryMib'> {
  /** the compiled file: `new URL('inside.js', import.meta.url)`. It sees all of this host's files, read-only by way of an overlay, and `process.env.BERTH_TEST_KVM` */
  readonly file: URL
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** of one run; after a death of the emulated host's kernel there is a second one */
  readonly timeoutMs: number
  /** lines of shell that run there before; only on an emulated host */
  readonly before?: string
  /** also where this host's KVM works */
  readonly alwaysEmulated?: boolean
  /** where the emulated host's files are made; default: the system's temporary folder */
  readonly place?: string
  /** called with what the file prints besides its results on an emulated host, as it comes */
  readonly onErrors?: (piece: Buffer) => void
}

/** How a run ended. */
export interface Outcome {
  /** what the file printed */
  readonly tap: string
  readonly exitCode: number | undefined
  /** by what the emulated host's kernel died, or that it stood still */
  readonly death?: string
  /** for a reader, when it failed */
  readonly evidence: readonly string[]
}

/** Runs the file, and gives its results to `t`. */
export async function testUnderKvm (t: Test, options: KvmTest): Promise<void> {
  const { tap, exitCode, death, evidence } = await runUnderKvm(options, (line) => t.comment(line))
  await replay(t, tap)
  t.equal(exitCode, 0, death === undefined ? 'the file ends in order' : `the file ends in order, and not by the end of the emulated host: ${death}`)
  if (!t.passing()) for (const text of evidence) t.comment(text)
}

/** Runs the file, twice if the emulated host's kernel dies before it has ended: QEMU's emulation of SVM does that to it, and it says nothing of what was tested. */
export async function runUnderKvm (options: KvmTest, say: (line: string) => void): Promise<Outcome> {
  const isHere = options.alwaysEmulated !== true && await kvmHere()
  const run = isHere ? runHere : runEmulated
  say(isHere ? 'on this host, whose KVM works' : 'on an emulated host: this one\'s KVM is missing, does not work, or is not wanted')
  const first = await run(options)
  if (first.death === undefined || first.exitCode !== undefined) return first
  say(`the emulated host's kernel died, which is no failure of what ran there, so all of it runs once more: ${first.death}`)
  return await run(options)
}

/** Whether VMs can run under this host's own KVM. */
export async function kvmHere (): Promise<boolean> {
  if (!existsSync('/dev/kvm')) return false
  return (await (await makeDriver({ accelerator: 'kvm' })).probe()).supported
}

async function runHere ({ file, args = [], env, timeoutMs }: KvmTest): Promise<Outcome> {
  const child = spawn(process.execPath, [fileURLToPath(file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env, TAP: '1', [UNDER_KVM]: '1' }, timeout: timeoutMs
  })
  let tap = ''
  child.stdout.on('data', (chunk: Buffer) => { tap += chunk.toString() })
  const [code] = await once(child, 'close')
  return { tap, exitCode: typeof code === 'number' ? code : undefined, evidence: [] }
}

async function runEmulated (options: KvmTest): Promise<Outcome> {
  const { data, processors, memoryMib, timeoutMs, place = tmpdir(), onErrors } = options
  // What boots there is made here, where it takes seconds.
  await guestSystem()
  const folder = await mkdtemp(join(place, 'berth-kvm-'))
  try {
    const began = performance.now()
    const run = whileItBeats(join(folder, 'share/beat'), async (signal) => await runOnHost({ folder, data, processors, memoryMib, isFirst: true, timeoutMs, signal, script: scriptOf(options) }))
    const { result: { ended, console, death }, stoodStill } = onErrors === undefined ? await run : await follow(join(folder, 'share/errors'), onErrors, run)
    const read = async (name: string): Promise<string> => existsSync(join(folder, 'share', name)) ? await readFile(join(folder, 'share', name), 'utf8') : ''
    const code = await read('exit')
    await keepEvidence(folder)
    return {
      tap: await read('tap'),
      exitCode: code === '' ? undefined : Number(code),
      ...died(death ?? (stoodStill ? 'it stood still' : undefined)),
      evidence: [
        `after ${Math.round((performance.now() - began) / 1000)} s QEMU ${ended}; the console's last lines:\n${lastLines(console, 40)}`,
        `what it printed besides its results:\n${lastLines(await read('errors'), 100)}`
      ]
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function died (death: string | undefined): Pick<Outcome, 'death'> {
  return death === undefined ? {} : { death }
}

/** For whoever looks into a failure: `BERTH_KVM_EVIDENCE=FOLDER` keeps all that the host wrote there. */
async function keepEvidence (folder: string): Promise<void> {
  const place = process.env['BERTH_KVM_EVIDENCE']
  if (place === undefined) return
  for (const name of ['console', 'share/tap', 'share/errors']) {
    if (existsSync(join(folder, name))) await copyFile(join(folder, name), join(place, name.replace('/', '-')))
  }
}

function scriptOf ({ file, args = [], env = {}, before = '' }: KvmTest): string {
  const words = [process.execPath, fileURLToPath(file), ...args].map(quoted).join(' ')
  const variables = Object.entries({ ...env, TAP: '1', [UNDER_KVM]: '1', [EMULATED]: '1' }).map(([name, value]) => `export ${name}=${quoted(value)}`).join('\n')
  return `#!/bin/sh
${beatTo('/run/share/beat')}
modprobe -a ${MODULES.join(' ')}
# as udev leaves them
for device in /dev/kvm /dev/vhost-net; do
  if chgrp kvm $device 2> /dev/null; then chmod 660 $device; else chmod 666 $device; fi
done
chmod 666 /dev/net/tun
# Each page that a VM touches first is an exit: with pages of 2 MiB there are 300 of them in a boot in place of 18,000. Files of memory have such pages by the options of their mounts (initrd.ts).
echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled
busybox ip link set lo up
# What apt says of kernels takes it a quarter of a minute there. Without it the guests' system is the last one that was built, which is that of this host.
printf '#!/bin/sh\\necho this host knows no archive >&2; exit 1\\n' > /usr/bin/apt-cache
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
${variables}
cd ${quoted(packageRoot)}
${before}
echo the host is up after $(cut -d' ' -f1 /proc/uptime) s > /run/share/errors
${words} > /run/share/tap 2>> /run/share/errors
echo $? > /run/share/exit.partial
grep -E '^(MemAvailable|Cached|Shmem):' /proc/meminfo >> /run/share/errors
sync
mv /run/share/exit.partial /run/share/exit
`
}

function quoted (word: string): string {
  return `'${word.replaceAll('\'', '\'\\\'\'')}'`
}
