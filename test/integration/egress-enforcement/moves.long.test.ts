// Policies that move with instances, and those that must not: see moves.ts.
import { runIsolated } from '../../helpers/isolated.ts'

await runIsolated(new URL('moves.js', import.meta.url))
