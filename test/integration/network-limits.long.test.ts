// The limits of an instance, measured from inside of it: see network-limits.ts.
import { runIsolated } from '../helpers/isolated.ts'

await runIsolated(new URL('network-limits.js', import.meta.url))
