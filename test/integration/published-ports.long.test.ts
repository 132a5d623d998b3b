// Published ports of a real machine: see published-ports.ts.
import { runIsolated } from '../helpers/isolated.ts'

await runIsolated(new URL('published-ports.js', import.meta.url))
