// The console in a real browser, against a real server with real machines: see console.ts.
import { runIsolated } from '../helpers/isolated.ts'

await runIsolated(new URL('console.js', import.meta.url))
