// A server's life in short: begins a restore or a capture, and is killed in the middle of it. Arguments: a module that exports `makeDriver`, the order.
import { writeFile } from 'node:fs/promises'
import type { MemoryImage, VmHandle, VmSpec } from '../../../core/library/hypervisor.ts'
import type { HypervisorFixture } from './fixture.ts'

/** `killAt`: so many ms after the beginning, or after the end, or as the guest is about to run, which the handle is written for to `statePath` with `.handle` after it */
export type CrashOrder = { readonly killAt: number | 'after' | 'before it runs' } & (
  { readonly do: 'restore', readonly spec: VmSpec, readonly image: MemoryImage, readonly statePath: string } |
  { readonly do: 'capture', readonly handle: VmHandle, readonly statePath: string, readonly memoryPath: string }
)

const [module = '', text = ''] = process.argv.slice(2)
const { makeDriver }: Pick<HypervisorFixture, 'makeDriver'> = await import(module)
const driver = await makeDriver()
const order: CrashOrder = JSON.parse(text)
const die = (): void => { process.kill(process.pid, 'SIGKILL') }

// Whatever can be done before is, so that the time is that of the steps in question.
await driver.probe()
if (order.do === 'restore') {
  plan()
  await driver.imaging?.restore(order.spec, order.image, order.statePath, {
    async beforeRun (handle) {
      if (order.killAt !== 'before it runs') return
      await writeFile(`${order.statePath}.handle`, JSON.stringify(handle))
      die()
      // Nobody comes back from there.
      await new Promise(() => {})
    }
  })
} else {
  const vm = await driver.attach(order.handle)
  await vm.imaging?.resume()
  plan()
  await vm.imaging?.capture({ statePath: order.statePath, memoryPath: order.memoryPath })
}
die()

function plan (): void {
  if (typeof order.killAt === 'number') setTimeout(die, order.killAt)
}
