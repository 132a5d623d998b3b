// The commands of ways in, of sleep, of memory and of everything that is deleted, with a real VM on a real network: see with-network.ts.
import { runIsolated } from '../helpers/isolated.ts'

await runIsolated(new URL('with-network.js', import.meta.url))
