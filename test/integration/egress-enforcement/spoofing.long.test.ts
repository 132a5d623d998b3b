// A guest that pretends to be another: see spoofing.ts.
import { runIsolated } from '../../helpers/isolated.ts'

await runIsolated(new URL('spoofing.js', import.meta.url))
