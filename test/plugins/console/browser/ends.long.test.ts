// See ends.ts.
import { runIsolated } from '../../../helpers/isolated.ts'

await runIsolated(new URL('ends.js', import.meta.url))
