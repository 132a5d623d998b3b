// The scenario that all drivers have, with QEMU as it runs here: see scenario.ts.
import { runIsolated } from '../../helpers/isolated.ts'

process.argv.push('qemu')
await runIsolated(new URL('scenario.js', import.meta.url))
