// For the tests of drivers: a VMM that closes its sockets long before its process is gone.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { ProcessIdentity } from '../../../../core/contracts/services.ts'
import type { Vm } from '../../../../core/library/hypervisor.ts'
import { readIdentity } from '../../../../core/process/identity.ts'
import { eventually } from '../../../helpers/eventually.ts'
import { testFolder } from '../../../helpers/folder.ts'

/** more than half a second, which was once taken for all that a VMM needs */
const SLOW_MS = 1500

export interface SlowEnd {
  /** the VMM's working folder in the VM's */
  readonly driver: string
  readonly socket: string
  readonly protocol: 'qmp' | 'rest'
  readonly attach: (process: ProcessIdentity, directory: string) => Vm
}

/** What its owner hears of it: that it is gone, and nothing before. */
export async function endsWithoutCountingAsHung (t: Test, { driver, socket, protocol, attach }: SlowEnd): Promise<void> {
  const directory = testFolder(t, {})
  const cwd = join(directory, driver)
  await mkdir(cwd)
  const child = spawn(process.execPath, [fileURLToPath(new URL('slow-to-end.js', import.meta.url)), socket, protocol, String(SLOW_MS)], { cwd, stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  await eventually('it listens', () => existsSync(join(cwd, socket)))
  const identity = child.pid === undefined ? undefined : readIdentity(child.pid)
  if (identity === undefined) throw new Error('it has ended')
  const vm = attach(identity, directory)
  t.teardown(() => vm.release())
  await eventually('it runs', () => vm.state.status === 'running')
  // A VM holds no process; a server has its port for that.
  const held = setInterval(() => {}, 60_000)
  t.teardown(() => clearInterval(held))
  const heard: string[] = []
  vm.onState(({ status, reason }) => heard.push([status, reason].join(' ').trim()))
  child.kill('SIGUSR1')
  await vm.wait()
  t.same(heard, ['gone'])
}
