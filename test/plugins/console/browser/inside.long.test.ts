// See inside.ts.
import { runIsolated } from '../../../helpers/isolated.ts'

await runIsolated(new URL('inside.js', import.meta.url))
