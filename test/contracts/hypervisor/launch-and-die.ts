// A server's life in short: launches a VM, prints its handle, and is killed. Arguments: a module that exports `makeDriver`, the VM's specification.
import { writeSync } from 'node:fs'
import type { HypervisorFixture } from './fixture.ts'

const [module = '', spec = ''] = process.argv.slice(2)
const { makeDriver }: Pick<HypervisorFixture, 'makeDriver'> = await import(module)
const driver = await makeDriver()
const vm = await driver.launch(JSON.parse(spec))
writeSync(1, JSON.stringify(vm.handle))
process.kill(process.pid, 'SIGKILL')
