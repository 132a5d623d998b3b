// The fake driver in the place of QEMU's, for configurations that turn `hypervisor-qemu` off.
import { fakePlugin } from './plugin.ts'

export const plugin = fakePlugin('qemu')
