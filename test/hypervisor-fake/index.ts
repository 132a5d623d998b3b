// The fake driver under the name `vz`, beside the real ones.
import { fakePlugin } from './plugin.ts'

export const plugin = fakePlugin('vz')
