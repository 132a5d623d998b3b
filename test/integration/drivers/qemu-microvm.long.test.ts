// The scenario that all drivers have, with QEMU on the board microvm: see scenario.ts.
import { runIsolated } from '../../helpers/isolated.ts'

process.argv.push('qemu-microvm')
await runIsolated(new URL('scenario.js', import.meta.url))
