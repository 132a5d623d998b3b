// Twenty real machines that sleep and are called at once: see sleepers.ts.
import { runIsolated } from '../helpers/isolated.ts'

await runIsolated(new URL('sleepers.js', import.meta.url))
